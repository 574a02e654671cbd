#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

/// Room at the end of an open HDF5 file for data that will make it longer. The library writes a
/// longer heap of strings before the file's record of its own length, and readers treat data past
/// that length as damage. So a process that is killed in between, or a full disk, would leave texts
/// that cannot be read. Therefore the file is made longer first, by a dataset without a name. Its
/// place is then freed for the new data, while another such dataset after it keeps the file long.
///
/// All functions need a Hdf5Lock.
class Hdf5Room {
 public:
  /// Makes sure that the next `bytes` bytes have room inside the file and on the disk. Throws Error
  /// when the disk has no room. It takes room for several such calls at once, but no more than
  /// `to_come`, the number of bytes by which the file is expected to grow until its end.
  void ensure(hid_t file, const std::string& path, int64_t bytes,
              int64_t to_come = std::numeric_limits<int64_t>::max());

  /// Gives back the unused room at the end of the file.
  void give_back();

 private:
  struct Block {
    Hdf5Id dataset;
    int64_t size = 0;
  };

  static Block append_block(hid_t file, const std::string& path, int64_t bytes, int64_t to_come);

  int64_t left_ = 0;  ///< The rest of the last freed block, in one piece.
  int64_t free_ = 0;  ///< The free space in the whole file at the last check.
  Block last_;        ///< The block that is in use at the end of the file.
};

}  // namespace stepop
