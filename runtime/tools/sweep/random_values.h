#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/value/value.h"

namespace stepop {

/// Random values of one key: `{uniform: [0, 0.5]}`, `{log_uniform: [1e-5, 1e-2]}`, `{integer: [1,
/// 8]}` including both ends, `{choice: [16, 32]}`.
class RandomValues {
 public:
  /// `path` is the key. Throws UsageError with the place for other descriptions.
  RandomValues(const std::string& path, const Value& description);

  /// The value of the draw `number`, which depends only on the number, the seed and the key: more
  /// draws or other keys do not change any value. Floats have four significant digits.
  Value draw(uint64_t seed, uint64_t number) const;

  /// Whether values come from a range and not from a list.
  bool is_range() const { return kind_ != Kind::kChoice; }

 private:
  enum class Kind { kUniform, kLogUniform, kInteger, kChoice };

  std::string path_;
  Kind kind_ = Kind::kChoice;
  double low_ = 0;
  double high_ = 0;
  Value::List choices_;
  Origin origin_;
};

}  // namespace stepop
