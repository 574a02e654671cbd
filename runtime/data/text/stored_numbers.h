#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/system/mapped_file.h"

namespace stepop {

struct NumbersSource;

/// Numbers that were made of a text once, in some time: in memory, or, of a large text, in a file
/// of 4 bytes a number that is read as it is needed.
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

/// What numbers are made of: parts, which several threads work on at once.
struct NumbersSource {
  int64_t parts = 0;
  /// The numbers of a part. Called by several threads at once.
  std::function<std::vector<int32_t>(int64_t part)> make = {};
  /// Where a file of them is kept; empty: in memory. It is made when it is not there.
  std::string path = {};
  /// Of all that the numbers depend on: a file with another one is made again.
  uint64_t key = 0;
};

/// The numbers of all parts, in order. What `make` throws of the first part that fails passes.
StoredNumbers store_numbers(const NumbersSource& source);

}  // namespace stepop
