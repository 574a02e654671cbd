#include "eval_out/hdf5/hdf5.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

std::recursive_mutex& library_mutex() {
  // Never destroyed, since static objects may hold an id.
  static auto* mutex = [] {
    // At exit, the library would close all open objects, and it crashes on a file that it could not
    // close before because the disk was full. Every Hdf5Id closes its own object.
    H5dont_atexit();
    // Reading a file must never open another file, whatever the file contains.
    H5Lunregister(H5L_TYPE_EXTERNAL);
    return new std::recursive_mutex;
  }();
  return *mutex;
}

int lock_depth = 0;  // locks that the thread that holds the mutex has

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(library_mutex()) {
  // Only the outermost: these calls forget the error that an inner lock may be there to report.
  if (lock_depth++ > 0) return;
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Lock::~Hdf5Lock() {
  if (--lock_depth > 0) return;
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
}

std::string hdf5_reason() {
  const Hdf5Lock lock;
  std::string reason;
  const auto keep_innermost = [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
    auto& text = *static_cast<std::string*>(data);
    if (text.empty() && error->desc != nullptr) text = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &reason);
  // "file write failed: ..., errno = 28, error message = 'No space left on device', buf = ..."
  constexpr std::string_view kSystem = "error message = '";
  if (const size_t begin = reason.find(kSystem); begin != std::string::npos) {
    const size_t text = begin + kSystem.size();
    return reason.substr(text, reason.find('\'', text) - text);
  }
  return reason.empty() ? "the HDF5 library gives no reason" : reason;
}

int64_t check_hdf5(int64_t result, std::string_view context) {
  if (result < 0) throw Error(fmt::format("{}: {}", context, hdf5_reason()));
  return result;
}

Hdf5Id::Hdf5Id(hid_t id, Close close_function, std::string_view context)
    : id_(check_hdf5(id, context)), close_(close_function) {}

Hdf5Id::Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

Hdf5Id& Hdf5Id::operator=(Hdf5Id&& other) noexcept {
  if (this == &other) return *this;
  reset();
  id_ = std::exchange(other.id_, -1);
  close_ = other.close_;
  return *this;
}

void Hdf5Id::reset() {
  if (id_ < 0) return;
  const Hdf5Lock lock;
  close_(std::exchange(id_, -1));
}

void Hdf5Id::close(std::string_view context) {
  if (id_ < 0) return;
  const Hdf5Lock lock;
  check_hdf5(close_(std::exchange(id_, -1)), context);
}

bool hdf5_was_locked_out() { return hdf5_reason() == std::generic_category().message(EAGAIN); }

Hdf5Id hdf5_space(const std::vector<hsize_t>& lengths) {
  return {H5Screate_simple(static_cast<int>(lengths.size()), lengths.data(), nullptr), H5Sclose,
          "HDF5 dataspace"};
}

Hdf5Id hdf5_rows(hid_t dataset, hsize_t first, const std::vector<hsize_t>& lengths) {
  Hdf5Id space(H5Dget_space(dataset), H5Sclose, "HDF5 dataspace");
  // The library would read as many lengths as the array has dimensions.
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank != static_cast<int>(lengths.size())) {
    throw Error(fmt::format("HDF5 selection: expected {} dimensions, the array has {}",
                            lengths.size(), rank));
  }
  std::vector<hsize_t> start(lengths.size(), 0);
  start[0] = first;
  check_hdf5(
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, lengths.data(), nullptr),
      "HDF5 selection");
  return space;
}

}  // namespace stepop
