#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/base/random.h"
#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// Whether something happens this time. A chance of 0 draws no random number, so a change that is
/// switched off leaves all other random numbers as they are.
inline bool happens(double chance, Random& random) {
  return chance > 0 && random.uniform() < chance;
}

/// The chance at `key`, 0 to 1.
double get_chance(const Config& params, std::string_view key, double fallback = 0);

/// A range from which a number is drawn evenly.
struct NumberRange {
  double low = 0;
  double high = 0;

  double draw(Random& random) const { return low + (high - low) * random.uniform(); }
  /// Draws a whole number; both ends are included.
  int64_t draw_whole(Random& random) const {
    const auto first = static_cast<int64_t>(low);
    return first + random.below(static_cast<int64_t>(high) - first + 1);
  }
};

/// The range from the number at `low` to the number at `high`, which must lie within `limits` in
/// this order.
NumberRange get_range(const Config& params, std::string_view low, std::string_view high,
                      NumberRange fallback, NumberRange limits);
/// The same as `get_range`, for whole numbers.
NumberRange get_whole_range(const Config& params, std::string_view low, std::string_view high,
                            NumberRange fallback, NumberRange limits);

/// The range at one key, `[lowest, highest]`.
NumberRange get_range(const Config& params, std::string_view key, NumberRange fallback,
                      NumberRange limits);
/// `[lowest, highest]`, or a number n for `middle` - n to `middle` + n; by default `middle` alone.
NumberRange get_spread(const Config& params, std::string_view key, double middle,
                       NumberRange limits);

/// Declares a range as `get_range` reads it; `range` is the default.
void add_range(Parameters& p, std::string_view name, NumberRange& range, std::string_view about,
               NumberRange limits);
/// Declares a range as `get_spread` reads it.
void add_spread(Parameters& p, std::string_view name, NumberRange& range, double middle,
                std::string_view about, NumberRange limits);
/// Declares `p`, which AugmentationList reads; `usual` is `usual_chance`.
void declare_chance(Parameters& p, double usual);

}  // namespace stepop
