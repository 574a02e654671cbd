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

/// Checks an open file's references to its texts before the library follows them: in a damaged
/// file, the library would read and write outside its memory. A text of variable length is a length
/// and a place in a global heap, a collection of objects; HDF5's file format specification, III.E,
/// describes both.
///
/// All functions need a Hdf5Lock, and throw Error that describes the damage.
class Hdf5References {
 public:
  explicit Hdf5References(hid_t file);

  /// Checks the texts among the attributes of a file or group and returns their names. Attributes
  /// in a separate heap (dense storage) or with a shared type are not checked and not returned.
  std::set<std::string> check_attributes(hid_t object);

  /// Checks the rows `first` to `first + count` of an array [N] of texts of variable length.
  /// Returns the texts' lengths in bytes. Chunks may have the filters deflate, shuffle and
  /// fletcher32.
  std::vector<int64_t> check_texts(hid_t dataset, const std::string& name, int64_t first,
                                   int64_t count);

 private:
  /// A part of the file in memory, from which numbers are read; throws for reads past its end.
  class Bytes;
  using Sizes = std::vector<std::pair<uint16_t, uint64_t>>;  ///< The sizes of objects, by their
                                                             ///< index.

  std::string read(uint64_t place, uint64_t size) const;
  uint64_t check(Bytes& reference);
  const Sizes& collection(uint64_t place);
  void check_messages(Bytes messages, int version, bool has_order,
                      std::vector<std::pair<uint64_t, uint64_t>>& rest,
                      std::set<std::string>& checked);
  void check_attribute(Bytes message, std::set<std::string>& checked);
  std::string stored(hid_t dataset, const std::string& name, uint64_t first, uint64_t count) const;

  int file_ = -1;         ///< The library's descriptor.
  uint64_t base_ = 0;     ///< The place in the file at which addresses begin.
  uint64_t end_ = 0;      ///< The length of the file.
  bool is_known_ = true;  ///< The format is supported: addresses and lengths have 8 bytes.
  std::map<uint64_t, Sizes> collections_;
};

}  // namespace stepop
