#include "eval_out/hdf5/hdf5_driver.h"

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // since HDF5 1.13 what a driver is stands there
#endif

#include <cstdint>
#include <limits>
#include <set>

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

/// The files that the library wants shorter, and that are still open. A file whose opening fails is
/// never one of them: it keeps its bytes.
std::set<const H5FD_t*>& uncut() {
  static std::set<const H5FD_t*> files;
  return files;
}

herr_t only_lengthen(H5FD_t* file, hid_t transfer, hbool_t is_closing) {
  if (!is_too_long(file)) return usual().truncate(file, transfer, is_closing);
  uncut().insert(file);
  return 0;
}

herr_t cut_and_close(H5FD_t* file) {
  const bool is_cut = uncut().erase(file) > 0 && is_too_long(file);
  const herr_t cut = is_cut ? usual().truncate(file, H5P_DEFAULT, /*closing=*/true) : 0;
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

Hdf5Id hdf5_file_access(bool is_locked) {
  Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "HDF5 properties");
  check_hdf5(H5Pset_driver(access, hdf5_driver(), nullptr), "HDF5 properties");
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
  check_hdf5(H5Pset_file_locking(access, is_locked, /*ignore_when_disabled=*/true),
             "HDF5 properties");
#else
  (void)is_locked;
#endif
  return access;
}

}  // namespace stepop
