#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/base/random.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// Whether something happens this time. A chance of 0 draws no random number, so that what is
/// switched off changes nothing else.
inline bool happens(double chance, Random& random) {
  return chance > 0 && random.uniform() < chance;
}

/// The chance at `key`, 0 to 1.
double get_chance(const Config& params, std::string_view key, double fallback = 0);

/// Numbers of which one is drawn each time, evenly.
struct NumberRange {
  double low = 0;
  double high = 0;

  double draw(Random& random) const { return low + (high - low) * random.uniform(); }
  /// A whole number, both ends included.
  int64_t draw_whole(Random& random) const {
    const auto first = static_cast<int64_t>(low);
    return first + random.below(static_cast<int64_t>(high) - first + 1);
  }
};

/// The two numbers at `low` and `high`, which lie within `limits`, the lower one first.
NumberRange get_range(const Config& params, std::string_view low, std::string_view high,
                      NumberRange fallback, NumberRange limits);
/// The same for whole numbers.
NumberRange get_whole_range(const Config& params, std::string_view low, std::string_view high,
                            NumberRange fallback, NumberRange limits);

}  // namespace stepop
