#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {

/// Looks at the references of an open file to its texts before the library follows them: in a
/// damaged file it would read, and write, memory that is not its own. A text of variable length is
/// a length and a place in a global heap, a collection of objects; HDF5's file format
/// specification, III.E, describes both.
///
/// All functions need a Hdf5Lock, and throw Error with what is wrong.
class Hdf5References {
 public:
  explicit Hdf5References(hid_t file);

  /// The texts among the attributes of a file or group. Returns their names, without those that
  /// lie in a heap of their own (dense storage) or have a shared type: these are not checked.
  std::set<std::string> check_attributes(hid_t object);

  /// Rows `first` to `first + count` of an array [N] of texts of variable length. Returns their
  /// lengths in bytes. Chunks may have the filters deflate, shuffle and fletcher32.
  std::vector<int64_t> check_texts(hid_t dataset, const std::string& name, int64_t first,
                                   int64_t count);

 private:
  /// A part of the file in memory, by which numbers are read; throws for what lies behind its end.
  class Bytes;
  using Sizes = std::vector<std::pair<uint16_t, uint64_t>>;  ///< Of objects, by their index.

  std::string read(uint64_t place, uint64_t size) const;
  uint64_t check(Bytes& reference);
  const Sizes& collection(uint64_t place);
  void check_messages(Bytes messages, int version, bool has_order,
                      std::vector<std::pair<uint64_t, uint64_t>>& rest,
                      std::set<std::string>& checked);
  void check_attribute(Bytes message, std::set<std::string>& checked);
  std::string stored(hid_t dataset, const std::string& name, uint64_t first, uint64_t count) const;

  int file_ = -1;         ///< The library's own.
  uint64_t base_ = 0;     ///< Where the addresses of the file begin.
  uint64_t end_ = 0;      ///< The length of the file.
  bool is_known_ = true;  ///< Addresses and lengths have 8 bytes.
  std::map<uint64_t, Sizes> collections_;
};

}  // namespace stepop
