#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

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

// Declarations of ranges within `limits`; `range` is the default.

/// The range at one key, `[lowest, highest]`.
void add_range(Parameters& p, std::string_view name, NumberRange& range, std::string_view about,
               NumberRange limits);
/// The names and meanings of a range's two ends.
struct RangeNames {
  std::string_view low;
  std::string_view about_low;
  std::string_view high;
  std::string_view about_high;
};
/// The range from the number at one key to the number at another.
void add_range(Parameters& p, const RangeNames& names, NumberRange& range, NumberRange limits);
/// The same for whole numbers.
void add_whole_range(Parameters& p, const RangeNames& names, NumberRange& range,
                     NumberRange limits);
/// `[lowest, highest]`, or a number n for `middle` - n to `middle` + n; by default `middle` alone.
void add_spread(Parameters& p, std::string_view name, NumberRange& range, double middle,
                std::string_view about, NumberRange limits);
/// Declares `p`, which AugmentationList reads; `usual` is `usual_chance`.
void declare_chance(Parameters& p, double usual);

/// The same parameters at a place in maps: `both/p` with the prefix `both/`.
std::vector<Parameter> with_prefix(std::string_view prefix, std::vector<Parameter> parameters);

}  // namespace stepop
