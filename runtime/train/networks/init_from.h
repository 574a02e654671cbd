#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/formats/state.h"

namespace stepop {

class Networks;

/// How the names of a file become names of a network.
struct NameRules {
  /// Only tensors whose names begin with it are taken; it is removed.
  std::string prefix;
  /// Beginnings of names, after the prefix is removed, and what they become. The first that fits a
  /// name is applied, once; an empty beginning fits every name.
  std::vector<std::pair<std::string, std::string>> map;
};

/// How the tensors of a file fit those of a network.
struct WeightsMatch {
  /// By the network's names: of the same shape, and of the same type or both floating.
  State fitting;
  /// `float16 to float32`, once for each of `fitting` whose type differs.
  std::vector<std::string> conversions;
  /// Names of the network that the file lacks, unless they are tied to a tensor that was found.
  std::vector<std::string> missing;
  /// Names of the file, with the prefix, that the network lacks.
  std::vector<std::string> left_over;
  /// `conv1.weight: [6, 3, 5, 5] in the file, [6, 1, 5, 5] here`.
  std::vector<std::string> different;
  /// Beginnings in the map that no name has.
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

/// Weights from elsewhere to begin with: `init_from: {path: weights.safetensors, prefix: model.,
/// strict: false, map: {"old.": "new."}, network: model}`, or the path alone, or a list of such.
///
/// `prefix` is by default `<network>.` for a checkpoint of stepop, else empty. `network` may be
/// left out when there is one. `strict` (true by default) asks that every tensor of the network and
/// of the file has its counterpart.
class InitFrom {
 public:
  /// Reads the config without opening a file. Throws UsageError with the place of a mistake.
  InitFrom(const Config& config, const Networks& networks);

  bool is_given() const { return !entries_.empty(); }

  /// Loads the weights and returns a report in lines, without a newline at its end; empty when
  /// nothing is given. Throws UsageError, before a network is changed, for a file that cannot be
  /// read, for a strict one that does not fit, and when not a single tensor fits.
  std::string apply() const;

 private:
  struct Entry {
    std::string place;  ///< The path in the config that an error begins with.
    std::string file;
    std::string network;
    std::optional<std::string> prefix;
    std::vector<std::pair<std::string, std::string>> map;
    bool strict = true;
  };

  Entry read(const std::string& path) const;
  std::string read_network(const Config& map) const;
  WeightsMatch match(const Entry& entry, const State& own) const;

  Config config_;
  const Networks& networks_;
  std::vector<Entry> entries_;
};

}  // namespace stepop
