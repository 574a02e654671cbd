#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

/// Room at the end of an open HDF5 file for what is going to make it longer. The library writes a
/// longer heap of strings before the file's own record of its length, and a reader takes what lies
/// behind that for damage: a process that is killed in between would leave texts that nobody can
/// read. And a disk that fills meanwhile leaves the same. So the file is made longer first, by a
/// dataset that has no name; its place is then free for what comes, as another one lies behind it.
///
/// All functions need a Hdf5Lock.
class Hdf5Room {
 public:
  /// Makes sure that the next `bytes` bytes find room inside of the file, and on the disk. Throws
  /// Error when the disk has none. At once it takes room for several such calls, but no more than
  /// `to_come`: what the file is expected to grow by until its end.
  void ensure(hid_t file, const std::string& path, int64_t bytes,
              int64_t to_come = std::numeric_limits<int64_t>::max());

  /// Lets the file end behind what it holds.
  void give_back();

 private:
  struct Block {
    Hdf5Id dataset;
    int64_t size = 0;
  };

  static Block append_block(hid_t file, const std::string& path, int64_t bytes, int64_t to_come);

  int64_t left_ = 0;  ///< Of the last block that was freed, in one piece.
  int64_t free_ = 0;  ///< In the whole file when that was last looked at.
  Block last_;        ///< Taken, at the end of the file.
};

}  // namespace stepop
