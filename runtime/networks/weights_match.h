#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/formats/state.h"

namespace stepop {

/// How the names of a file become names of a network.
struct NameRules {
  /// Only tensors whose names begin with it are taken; it is removed.
  std::string prefix;
  /// Beginnings of names, once the prefix went, and what they become. The first that fits a name is
  /// applied, once; an empty beginning fits every name.
  std::vector<std::pair<std::string, std::string>> map;
};

/// How the tensors of a file fit those of a network.
struct WeightsMatch {
  /// By the network's names: of the same shape, and of the same type or both floating.
  State fitting;
  /// `float16 to float32`, once for each of `fitting` whose type differs.
  std::vector<std::string> conversions;
  /// Names of the network. One that is tied to a tensor that was found is not missing.
  std::vector<std::string> missing;
  /// Names as they are in the file, of those that begin with the prefix.
  std::vector<std::string> left_over;
  /// `conv1.weight: [6, 3, 5, 5] in the file, [6, 1, 5, 5] here`.
  std::vector<std::string> different;
  /// Beginnings of the map with which no name begins.
  std::vector<std::string> unused;
  size_t wanted = 0;  ///< How many tensors the network has.

  bool is_whole() const {
    return missing.empty() && left_over.empty() && different.empty() && unused.empty();
  }
};

/// Compares the tensors of a file with a network's `own`; changes neither. Throws Error when two
/// tensors of the file get the same name.
WeightsMatch match_weights(const State& file, const State& own, const NameRules& rules);

/// The prefix with which the most tensors of `file` would have a name of `own`, and how many; only
/// prefixes that end with a dot, and the empty one.
std::pair<std::string, size_t> nearest_prefix(const State& file, const State& own);

}  // namespace stepop
