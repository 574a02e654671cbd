#include "iterators/diffusion/beta_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <set>

#include "runtime/core/base/error.h"

namespace stepop::diffusion {
namespace {

std::vector<double> linear(int64_t timesteps) {
  constexpr int64_t kFewest = 21;  // the last beta, 20 / timesteps, must stay below 1
  if (timesteps < kFewest) {
    throw Error(
        fmt::format("the schedule linear has {} timesteps or more, found {}; cosine can "
                    "have fewer",
                    kFewest, timesteps));
  }
  const double scale = 1000.0 / static_cast<double>(timesteps);
  const double first = scale * 0.0001;
  const double last = scale * 0.02;
  const double step = (last - first) / static_cast<double>(timesteps - 1);
  std::vector<double> betas;
  for (int64_t i = 0; i < timesteps; ++i) betas.push_back(static_cast<double>(i) * step + first);
  betas.back() = last;
  return betas;
}

/// The part of the original signal that is left at `time`, from 0 to 1.
double cosine_signal(double time) {
  const double root = std::cos((time + 0.008) / 1.008 * std::numbers::pi / 2);
  return root * root;
}

std::vector<double> cosine(int64_t timesteps) {
  constexpr double kLargest = 0.999;
  const auto count = static_cast<double>(timesteps);
  std::vector<double> betas;
  for (int64_t i = 0; i < timesteps; ++i) {
    const auto step = static_cast<double>(i);
    const double left = cosine_signal((step + 1) / count) / cosine_signal(step / count);
    betas.push_back(std::min(1 - left, kLargest));
  }
  return betas;
}

/// Parses an integer of at least 1.
int64_t count_of(std::string_view text, const std::string& spacing) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) {
    throw Error(
        fmt::format("expected a number of timesteps such as 50, several such as "
                    "\"10,15,20\", or \"ddim50\", found \"{}\"",
                    spacing));
  }
  return count;
}

std::vector<int64_t> with_one_stride(int64_t timesteps, int64_t count) {
  const auto taken_by = [&](int64_t stride) { return (timesteps - 1) / stride + 1; };
  std::set<int64_t> possible;
  for (int64_t stride = 1; stride < timesteps; ++stride) {
    if (taken_by(stride) == count) {
      std::vector<int64_t> taken;
      for (int64_t i = 0; i < timesteps; i += stride) taken.push_back(i);
      return taken;
    }
    possible.insert(taken_by(stride));
  }
  std::string near;
  const auto above = possible.lower_bound(count);
  if (above != possible.begin()) near = fmt::format("{}", *std::prev(above));
  if (above != possible.end()) near += fmt::format("{}{}", near.empty() ? "" : " or ", *above);
  throw Error(fmt::format("no integer stride takes {} of {} timesteps; one takes {}", count,
                          timesteps, near));
}

}  // namespace

std::vector<double> beta_schedule(std::string_view name, int64_t timesteps) {
  if (timesteps < 2) throw Error(fmt::format("expected 2 timesteps or more, found {}", timesteps));
  if (name == "linear") return linear(timesteps);
  if (name == "cosine") return cosine(timesteps);
  throw Error(fmt::format("expected linear or cosine, found \"{}\"", name));
}

std::vector<int64_t> spaced_timesteps(int64_t timesteps, const std::string& spacing) {
  constexpr std::string_view kDdim = "ddim";
  const std::string_view text = spacing;
  if (text.starts_with(kDdim)) {
    return with_one_stride(timesteps, count_of(text.substr(kDdim.size()), spacing));
  }
  std::vector<int64_t> counts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    counts.push_back(count_of(text.substr(begin, end - begin), spacing));
    begin = end + 1;
  }
  const auto sections = static_cast<int64_t>(counts.size());
  std::set<int64_t> taken;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t count = counts[static_cast<size_t>(i)];
    const int64_t size = timesteps / sections + (i < timesteps % sections ? 1 : 0);
    if (size < count) {
      throw Error(fmt::format("cannot take {} of a section of {} timesteps (\"{}\")", count, size,
                              spacing));
    }
    const double stride =
        count == 1 ? 1 : static_cast<double>(size - 1) / static_cast<double>(count - 1);
    double at = 0;  // summed and rounded half to even, as in Python
    for (int64_t k = 0; k < count; ++k) {
      taken.insert(start + static_cast<int64_t>(std::nearbyint(at)));
      at += stride;
    }
    start += size;
  }
  return {taken.begin(), taken.end()};
}

}  // namespace stepop::diffusion
