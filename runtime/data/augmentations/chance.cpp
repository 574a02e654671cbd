#include "runtime/data/augmentations/chance.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/core/value/yaml_writer.h"

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

NumberRange get_range(const Config& params, std::string_view key, NumberRange fallback,
                      NumberRange limits) {
  const auto numbers = params.get<std::vector<double>>(key, {fallback.low, fallback.high});
  if (numbers.size() == 2 && limits.low <= numbers[0] && numbers[0] <= numbers[1] &&
      numbers[1] <= limits.high) {
    return {.low = numbers[0], .high = numbers[1]};
  }
  throw params.error(key, fmt::format("expected [lowest, highest], {} to {}, found {}", limits.low,
                                      limits.high, flow_yaml(*params.peek(key))));
}

NumberRange get_spread(const Config& params, std::string_view key, double middle,
                       NumberRange limits) {
  const Value* value = params.has(key) ? params.peek(key) : nullptr;
  if (value != nullptr && value->is_list()) {
    return get_range(params, key, {.low = middle, .high = middle}, limits);
  }
  const double spread = params.get(key, 0.0);
  if (spread >= 0 && middle + spread <= limits.high) {
    return {.low = std::max(limits.low, middle - spread), .high = middle + spread};
  }
  throw params.error(key, fmt::format("expected 0 to {}, or [lowest, highest], found {}",
                                      limits.high - middle, spread));
}

/// Declares both ends of a range; `get` reads one of them.
template <class Get>
void add_ends(Parameters& p, const RangeNames& names, NumberRange& range, NumberRange limits,
              const char* kind, const Get& get) {
  const Range allowed = at_least(limits.low).at_most(limits.high);
  const auto row = [&](std::string_view name, double usual, std::string_view about) {
    return Parameter{std::string(name),
                     fmt::format("{}", usual),
                     std::string(about),
                     false,
                     {.kind = kind, .range = allowed}};
  };
  p.describe(row(names.low, range.low, names.about_low));
  const Config* config = p.describe(row(names.high, range.high, names.about_high));
  if (config == nullptr) return;
  const double low = get(*config, names.low, range.low);
  range = checked(*config, names.low, names.high,
                  {.low = low, .high = get(*config, names.high, range.high)}, limits);
}

}  // namespace

double get_chance(const Config& params, std::string_view key, double fallback) {
  const double chance = params.get(key, fallback);
  if (chance >= 0 && chance <= 1) return chance;
  throw params.error(key, fmt::format("expected a chance, 0 to 1, found {}", chance));
}

void add_range(Parameters& p, std::string_view name, NumberRange& range, std::string_view about,
               NumberRange limits) {
  const Config* config = p.describe({std::string(name),
                                     fmt::format("[{}, {}]", range.low, range.high),
                                     std::string(about),
                                     false,
                                     {.kind = "list of number"}});
  if (config != nullptr) range = get_range(*config, name, range, limits);
}

void add_range(Parameters& p, const RangeNames& names, NumberRange& range, NumberRange limits) {
  add_ends(p, names, range, limits, "number",
           [](const Config& config, std::string_view key, double usual) {
             return config.get(key, usual);
           });
}

void add_whole_range(Parameters& p, const RangeNames& names, NumberRange& range,
                     NumberRange limits) {
  add_ends(p, names, range, limits, "int",
           [](const Config& config, std::string_view key, double usual) {
             return static_cast<double>(config.get(key, static_cast<int64_t>(usual)));
           });
}

void add_spread(Parameters& p, std::string_view name, NumberRange& range, double middle,
                std::string_view about, NumberRange limits) {
  const Config* config = p.describe(
      {std::string(name), "0", std::string(about), false, {.kind = "number | list of number"}});
  range = config != nullptr ? get_spread(*config, name, middle, limits)
                            : NumberRange{.low = middle, .high = middle};
}

void declare_chance(Parameters& p, double usual) {
  p.describe({"p",
              fmt::format("{}", usual),
              "the chance",
              false,
              {.kind = "number", .range = at_least(0).at_most(1)}});
}

std::vector<Parameter> with_prefix(std::string_view prefix, std::vector<Parameter> parameters) {
  for (Parameter& each : parameters) each.name.insert(0, prefix);
  return parameters;
}

}  // namespace stepop
