#include "eval_out/hdf5/hdf5_driver.h"

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // since HDF5 1.13 what a driver is stands there
#endif

#include <cstdint>
#include <limits>

namespace stepop {
namespace {

/// The library shows its usual driver with a file that is open.
const H5FD_class_t& usual() {
  static const H5FD_class_t driver = [] {
    H5FD_t* const file = H5FDopen("/dev/null", H5F_ACC_RDONLY, H5P_DEFAULT,
                                  static_cast<haddr_t>(std::numeric_limits<int64_t>::max()));
    check_hdf5(file == nullptr ? -1 : 0, "HDF5 driver");
    const H5FD_class_t found = *file->cls;
    H5FDclose(file);
    return found;
  }();
  return driver;
}

/// Whether the file is longer than what the library needs of it.
bool is_too_long(const H5FD_t* file) {
  return usual().get_eoa(file, H5FD_MEM_SUPER) < usual().get_eof(file, H5FD_MEM_SUPER);
}

herr_t only_lengthen(H5FD_t* file, hid_t transfer, hbool_t is_closing) {
  return is_too_long(file) ? 0 : usual().truncate(file, transfer, is_closing);
}

herr_t cut_and_close(H5FD_t* file) {
  const bool is_written = (file->access_flags & H5F_ACC_RDWR) != 0;
  const herr_t cut =
      is_written && is_too_long(file) ? usual().truncate(file, H5P_DEFAULT, /*closing=*/true) : 0;
  const herr_t closed = usual().close(file);
  return cut < 0 ? cut : closed;
}

hid_t make_driver() {
  H5FD_class_t own = usual();
  own.name = "stepop";
#if H5_VERSION_GE(1, 13, 2)
  own.value = static_cast<H5FD_class_value_t>(256);  // HDF5's numbers end before it
#endif
  own.terminate = nullptr;
  own.truncate = only_lengthen;
  own.close = cut_and_close;
  return check_hdf5(H5FDregister(&own), "HDF5 driver");
}

}  // namespace

hid_t hdf5_driver() {
  static const hid_t driver = make_driver();
  return driver;
}

}  // namespace stepop
