#include "runtime/core/base/nearest.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace stepop {

int edit_distance(std::string_view a, std::string_view b) {
  const auto same = [&](size_t i, size_t j) {
    return std::tolower(static_cast<unsigned char>(a[i])) ==
           std::tolower(static_cast<unsigned char>(b[j]));
  };
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::vector<std::string> sorted_by_distance(std::string_view name, std::vector<std::string> names) {
  std::vector<std::pair<int, std::string>> sorted;
  for (auto& other : names) {
    const int distance = edit_distance(name, other);
    sorted.emplace_back(distance, std::move(other));
  }
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < names.size(); ++i) names[i] = std::move(sorted[i].second);
  return names;
}

namespace {

/// Whether two texts at this distance look alike; `lr` and `wd` do not.
bool looks_alike(std::string_view name, int distance) {
  return distance <= std::max(1, static_cast<int>(name.size() + 1) / 3);
}

std::pair<std::string, std::string> parent_and_key(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

template <class Distance>  // int(const std::string&), negative when the texts do not look alike
std::vector<std::string> nearest(std::vector<std::string> candidates, size_t count,
                                 const Distance& distance) {
  std::vector<std::pair<int, std::string>> close;
  for (auto& candidate : candidates) {
    const int value = distance(candidate);
    if (value > 0) close.emplace_back(value, std::move(candidate));
  }
  std::sort(close.begin(), close.end());
  close.erase(std::unique(close.begin(), close.end()), close.end());
  if (close.size() > count) close.resize(count);
  std::vector<std::string> names;
  names.reserve(close.size());
  for (auto& [value, name] : close) names.push_back(std::move(name));
  return names;
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& names,
                                       size_t count) {
  return nearest(names, count, [&](const std::string& candidate) {
    if (candidate == name) return -1;
    // Names that only differ in case have distance 0, the smallest.
    const int distance = edit_distance(name, candidate);
    return looks_alike(name, distance) ? distance + 1 : -1;
  });
}

std::vector<std::string> nearest_paths(const std::string& path,
                                       const std::vector<std::string>& paths, size_t count) {
  const auto place = parent_and_key(path);
  return nearest(paths, count, [&](const std::string& candidate) {
    const auto& [parent, key] = place;
    if (candidate == path) return -1;
    const auto [other_parent, other_key] = parent_and_key(candidate);
    const int parents = edit_distance(parent, other_parent);
    const int keys = edit_distance(key, other_key);
    // The right key in a wrong place is also near, but never as near as a key in the same place.
    if (keys == 0 && !looks_alike(parent, parents)) return 1000 + parents;
    return looks_alike(key, keys) && looks_alike(parent, parents) ? keys + parents + 1 : -1;
  });
}

}  // namespace stepop
