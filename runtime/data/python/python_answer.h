#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "runtime/core/base/error.h"

namespace stepop {

/// Reads the numbers and texts of an answer of a worker, one after another. Throws Error for an
/// answer that is cut short. The bytes must outlive it.
class PythonAnswer {
 public:
  explicit PythonAnswer(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    const std::string_view bytes = text(sizeof(value));
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  std::string_view text(size_t size) {
    if (size > rest_.size()) throw Error("Python sent an answer that is cut short");
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }

  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace stepop
