#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/system/mapped_file.h"

namespace stepop {

struct NumbersSource;

/// Numbers that were made once from a text, which takes time. They are in memory or, for a large
/// text, in a file with 4 bytes a number that is read on demand.
class StoredNumbers {
 public:
  std::span<const int32_t> values() const {
    return file_.bytes().empty() ? std::span<const int32_t>(in_memory_) : in_file();
  }
  /// Throws Error when the file has become shorter.
  void check() const { file_.check_size(); }

 private:
  friend StoredNumbers store_numbers(const NumbersSource& source);
  std::span<const int32_t> in_file() const;

  std::vector<int32_t> in_memory_;
  MappedFile file_;
};

/// The source of the numbers: parts, which several threads process at once.
struct NumbersSource {
  int64_t parts = 0;
  /// Returns the numbers of a part. Several threads call this function at once.
  std::function<std::vector<int32_t>(int64_t part)> make = {};
  /// The file for the numbers, which is made when it is missing; if empty, they stay in memory.
  std::string path = {};
  /// A hash of everything on which the numbers depend: a file with another key is made again.
  uint64_t key = 0;
};

/// The numbers of all parts, in order. An exception of `make` is passed on; if several parts fail,
/// the exception of the first.
StoredNumbers store_numbers(const NumbersSource& source);

}  // namespace stepop
