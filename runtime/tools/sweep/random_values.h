#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/core/config/value.h"

namespace stepop {

/// Values that are drawn at random for one key: `{uniform: [0, 0.5]}`, `{log_uniform: [1e-5,
/// 1e-2]}`, `{integer: [1, 8]}` with both ends, `{choice: [16, 32]}`.
class RandomValues {
 public:
  /// `path` is the key. Throws UsageError with the place for what is none of these.
  RandomValues(const std::string& path, const Value& description);

  /// The value of the draw `number`, which depends on nothing but that, the seed and the key: more
  /// draws, or another key beside it, change no value. Floats have four digits that matter.
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
