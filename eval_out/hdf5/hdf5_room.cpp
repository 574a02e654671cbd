#include "eval_out/hdf5/hdf5_room.h"

#include <algorithm>
#include <utility>

#include "eval_out/hdf5/hdf5_file.h"
#include "runtime/core/base/error.h"
#include "runtime/core/system/reserve.h"

namespace stepop {
namespace {

constexpr int64_t kMinBlock = int64_t{1} << 20;
constexpr int64_t kMaxBlock = int64_t{64} << 20;
constexpr int64_t kBatchesPerBlock = 8;
constexpr int64_t kHeaderBytes = int64_t{8} << 10;  ///< The size of the header that the library
                                                    ///< writes for a block.

Hdf5Id make_block(hid_t file, const std::string& path, int64_t size) {
  const Hdf5Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "HDF5 properties");
  check_hdf5(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY), "HDF5 properties");
  check_hdf5(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), "HDF5 properties");
  return {H5Dcreate_anon(file, H5T_NATIVE_UINT8, hdf5_space({static_cast<hsize_t>(size)}), creation,
                         H5P_DEFAULT),
          H5Dclose, path + ": cannot make room"};
}

/// The free space inside the file, which the library uses before it makes the file longer.
int64_t free_space(hid_t file) {
  return check_hdf5(H5Fget_freespace(file), "cannot read the file's free space");
}

/// Reserves `size` bytes after the file's end, or half, or a quarter ... but no less than `least`;
/// returns the reserved size.
int64_t reserve_at_most(const std::string& path, int64_t end, int64_t size, int64_t least) {
  for (;; size = std::max(size / 2, least)) {
    try {
      reserve_space(path, end, end + size + kHeaderBytes);
      return size;
    } catch (const Error&) {
      if (size == least) throw;
    }
  }
}

}  // namespace

void Hdf5Room::ensure(hid_t file, const std::string& path, int64_t bytes, int64_t to_come) {
  const int64_t used = free_ - free_space(file);
  left_ -= std::max<int64_t>(used, 0);
  while (left_ < bytes) {
    Block next = append_block(file, path, bytes, to_come);
    left_ = last_.size;
    last_ = std::move(next);  // the block before is freed
  }
  free_ = free_space(file);
}

/// Appends a block of at least `bytes`, or more when the disk has more. The space on the disk is
/// reserved first, since the library does not recover from a full disk.
Hdf5Room::Block Hdf5Room::append_block(hid_t file, const std::string& path, int64_t bytes,
                                       int64_t to_come) {
  const int64_t end = hdf5_file_size(file);
  const int64_t several = std::clamp(kBatchesPerBlock * bytes, kMinBlock, kMaxBlock);
  int64_t size = std::max(bytes, std::min(several, to_come));
  size = reserve_at_most(path, end, size, bytes);
  Block block{make_block(file, path, size), size};
  while (static_cast<int64_t>(H5Dget_offset(block.dataset)) + block.size <= end) {
    // The library used a free place inside the file; a larger block goes to the end.
    size *= 2;
    reserve_space(path, end, end + size + kHeaderBytes);
    block = {make_block(file, path, size), size};
  }
  check_hdf5(H5Fflush(file, H5F_SCOPE_LOCAL), path + ": cannot write");
  return block;
}

void Hdf5Room::give_back() {
  last_ = {};
  left_ = free_ = 0;
}

}  // namespace stepop
