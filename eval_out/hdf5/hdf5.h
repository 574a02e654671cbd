#pragma once

// The only file that includes the HDF5 library.
#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// Guards the HDF5 library, which is not thread-safe: all code that calls it, including datasets
/// that read HDF5, must hold a Hdf5Lock. A thread may hold several. While a thread holds one, HDF5
/// does not print this thread's errors; `check_hdf5` turns them into exceptions.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// What the last call of this thread failed with; the operating system's own words when it was the
/// operating system: `No space left on device`.
std::string hdf5_reason();

/// Returns `result`; throws Error `context: reason` when it is negative.
int64_t check_hdf5(int64_t result, std::string_view context);

/// Owns an object of the library (a file, group, dataset, type, ...) and closes it.
class Hdf5Id {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Id() = default;
  /// Throws Error `context: reason` when `id` is negative.
  Hdf5Id(hid_t id, Close close_function, std::string_view context);
  Hdf5Id(Hdf5Id&& other) noexcept;
  Hdf5Id& operator=(Hdf5Id&& other) noexcept;
  ~Hdf5Id() { reset(); }

  operator hid_t() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

  /// Closes the object and ignores errors.
  void reset();
  /// Closes the object; throws Error `context: reason` when that fails.
  void close(std::string_view context);

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Whether this thread's last call failed because another process holds a lock on the file.
bool hdf5_was_locked_out();

/// The dataspace of an array with these lengths.
Hdf5Id hdf5_space(const std::vector<hsize_t>& lengths);

/// The dataspace of `dataset` with a block of rows selected: `lengths[0]` rows (of the first
/// dimension) from `first` on, with the full lengths of the other dimensions. Throws Error when the
/// array has another number of dimensions.
Hdf5Id hdf5_rows(hid_t dataset, hsize_t first, const std::vector<hsize_t>& lengths);

}  // namespace stepop
