#include "runtime/config/nearest.h"

#include <algorithm>
#include <cctype>

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
  std::sort(names.begin(), names.end());
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  return names;
}

std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& names,
                                       size_t count) {
  const int limit = std::max(2, static_cast<int>(name.size()) / 3);
  std::vector<std::string> close;
  for (const auto& candidate : names) {
    if (candidate != name && edit_distance(name, candidate) <= limit) close.push_back(candidate);
  }
  close = sorted_by_distance(name, std::move(close));
  if (close.size() > count) close.resize(count);
  return close;
}

}  // namespace stepop
