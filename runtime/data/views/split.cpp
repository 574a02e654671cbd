#include "runtime/data/views/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/random.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// A split keeps a number for each example.
constexpr int64_t kMostSplit = int64_t{1} << 32;
constexpr double kRounding = 1e-9;

/// The beginning and end of the chosen part's share, as fractions of the whole.
struct Share {
  double begin = 0;
  double end = 0;
};

Share read_share(const Config& params) {
  const Config parts = params.at("split/parts");
  const auto part = params.get<std::string>("part");
  double sum = 0;
  Share found;
  for (const auto& name : parts.keys()) {
    const auto share = parts.get<double>(name);
    if (!(share > 0 && share <= 1)) {
      throw parts.error(name,
                        fmt::format("a part's share is above 0 and at most 1, found {:g}", share));
    }
    if (name == part) found = {sum, sum + share};
    sum += share;
  }
  if (sum == 0) {
    throw params.error("split/parts",
                       "missing: a map of parts and their shares, such as {train: "
                       "0.9, validation: 0.1}");
  }
  if (sum > 1 + kRounding) {
    throw params.error("split/parts",
                       fmt::format("the shares sum up to {:g}, which is above 1", sum));
  }
  if (found.end == 0) {
    throw params.error("part", fmt::format("the split has no part \"{}\"; its parts are: {}", part,
                                           list_text(parts.keys())));
  }
  if (found.end > 1 - kRounding) found.end = 1;
  return found;
}

std::vector<int64_t> at_random(int64_t size, uint64_t seed, const Share& share) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  Random random(mix_seed({seed, seed_of("split")}));
  for (int64_t i = size - 1; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1))]);
  }
  const auto position = [&](double fraction) {
    return order.begin() + std::llround(fraction * static_cast<double>(size));
  };
  std::vector<int64_t> part(position(share.begin), position(share.end));
  std::sort(part.begin(), part.end());
  return part;
}

/// The groups are put one after another in a random order; a group belongs to the part whose share
/// contains the group's middle.
std::vector<int64_t> by_groups(const std::vector<int64_t>& groups, uint64_t seed,
                               const Share& share) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t group : groups) ++counts[group];
  std::vector<std::tuple<uint64_t, int64_t, int64_t>> order;  // number drawn, group, its count
  for (const auto& [group, count] : counts) {
    order.emplace_back(mix_seed({seed, seed_of("groups"), static_cast<uint64_t>(group)}), group,
                       count);
  }
  std::sort(order.begin(), order.end());
  std::map<int64_t, bool> is_in;
  double before = 0;
  for (const auto& [drawn, group, count] : order) {
    const double middle =
        (before + static_cast<double>(count) / 2) / static_cast<double>(groups.size());
    is_in[group] = middle >= share.begin && middle < share.end;
    before += static_cast<double>(count);
  }
  std::vector<int64_t> part;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (is_in.at(groups[i])) part.push_back(static_cast<int64_t>(i));
  }
  return part;
}

}  // namespace

std::vector<int64_t> read_part(const Config& params, const Source& source) {
  const Share share = read_share(params);
  const auto seed = static_cast<uint64_t>(params.get_at_least("split/seed", 0, 0));
  const bool has_groups = params.has("split/groups");
  if (source.size() > kMostSplit) {
    throw params.error("split", fmt::format("a split keeps a number for each example, and {} has "
                                            "{}: choose its parts by `fraction`",
                                            source.place(), with_thousands(source.size())));
  }
  std::vector<int64_t> part =
      has_groups ? by_groups(read_groups(params, "split/groups", source), seed, share)
                 : at_random(source.size(), seed, share);
  if (part.empty()) {
    throw params.error(
        "part",
        fmt::format("no example is left for \"{}\": {} has {}{}; choose a larger share or "
                    "another seed",
                    params.get<std::string>("part"), source.place(), with_thousands(source.size()),
                    has_groups ? ", and groups stay together" : ""));
  }
  return part;
}

}  // namespace stepop
