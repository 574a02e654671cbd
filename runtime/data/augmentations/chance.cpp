#include "runtime/data/augmentations/chance.h"

#include <fmt/format.h>

namespace stepop {
namespace {

NumberRange checked(const Config& params, std::string_view low, std::string_view high,
                    NumberRange range, NumberRange limits) {
  const auto check = [&](std::string_view key, double number) {
    if (number >= limits.low && number <= limits.high) return;
    throw params.error(key,
                       fmt::format("expected {} to {}, found {}", limits.low, limits.high, number));
  };
  check(low, range.low);
  check(high, range.high);
  if (range.low > range.high) {
    throw params.error(
        high, fmt::format("expected {}, {}, or more, found {}", low, range.low, range.high));
  }
  return range;
}

}  // namespace

double get_chance(const Config& params, std::string_view key, double fallback) {
  const double chance = params.get(key, fallback);
  if (chance >= 0 && chance <= 1) return chance;
  throw params.error(key, fmt::format("expected a chance, 0 to 1, found {}", chance));
}

NumberRange get_range(const Config& params, std::string_view low, std::string_view high,
                      NumberRange fallback, NumberRange limits) {
  return checked(params, low, high,
                 {.low = params.get(low, fallback.low), .high = params.get(high, fallback.high)},
                 limits);
}

NumberRange get_whole_range(const Config& params, std::string_view low, std::string_view high,
                            NumberRange fallback, NumberRange limits) {
  const auto get = [&](std::string_view key, double number) {
    return static_cast<double>(params.get(key, static_cast<int64_t>(number)));
  };
  return checked(params, low, high,
                 {.low = get(low, fallback.low), .high = get(high, fallback.high)}, limits);
}

}  // namespace stepop
