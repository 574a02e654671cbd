#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/state.h"
#include "runtime/train/networks/name_rules.h"

namespace stepop {

class Networks;
class Update;

/// How the tensors of a file fit the tensors of a network.
struct WeightsMatch {
  /// Fitting tensors by the network's names: the same shape, and the same type or both
  /// floating-point.
  State fitting;
  /// `float16 to float32`, once for each tensor in `fitting` whose type differs.
  std::vector<std::string> conversions;
  /// Names of the network that are missing in the file, unless they are tied to a tensor that was
  /// found.
  std::vector<std::string> missing;
  /// Names of the file, with the prefix, that are missing in the network.
  std::vector<std::string> left_over;
  /// `conv1.weight: [6, 3, 5, 5] in the file, [6, 1, 5, 5] here`.
  std::vector<std::string> different;
  /// Beginnings in the map that fit no name.
  std::vector<std::string> unused;
  /// For names that are missing: the name of the file that is left over, has the same shape and is
  /// nearest.
  std::vector<std::pair<std::string, std::string>> nearest;
  size_t wanted = 0;  ///< The number of tensors of the network.

  bool is_whole() const {
    return missing.empty() && left_over.empty() && different.empty() && unused.empty();
  }
};

/// Compares the tensors of a file with a network's `own` tensors; changes neither. Throws Error
/// when two tensors of the file get the same name.
WeightsMatch match_weights(const State& file, const State& own, const NameRules& rules);

/// The prefixes with which the most tensors of `file` would have a name of `own`, and how many
/// would. Only prefixes that end with a dot are tried, and the empty prefix.
std::pair<std::vector<std::string>, size_t> nearest_prefixes(const State& file, const State& own);

/// Initial weights from a file of load_weights: `init_from: {path: weights.safetensors, prefix:
/// model., strict: false, map: {"old.": "new."}, network: model}`, or just the path, or a list of
/// either.
///
/// The default of `prefix` is `<network>.` for a stepop checkpoint, otherwise the prefix with which
/// most names fit. `network` may be left out when there is only one. `strict` (true by default)
/// requires that every tensor of the network is in the file, and every tensor of the file with the
/// prefix in the network. With `optimizer: true` the state of the optimizer that is beside the
/// weights in a file of torch.save is loaded as well, into the update that trains the network.
class InitFrom {
 public:
  /// Reads the config without opening a file. Throws UsageError with the place of a mistake.
  InitFrom(const Config& config, const Networks& networks);

  bool is_given() const { return !entries_.empty(); }

  /// Whether an entry has `optimizer: true`.
  bool takes_optimizers() const;

  using UpdatesByName = OrderedMap<std::unique_ptr<Update>>;
  /// Loads the weights and returns a report of several lines, without a final newline; empty
  /// without `init_from`. `updates` are those that train, null for an evaluation, which needs no
  /// state of an optimizer. Throws UsageError, before a network is changed, for a file that cannot
  /// be read, for a file that does not fit although `strict` is on, when no tensor fits, and for a
  /// state of an optimizer that does not fit.
  std::string apply(const UpdatesByName* updates = nullptr) const;

 private:
  struct Entry {
    std::string place;  ///< The path in the config with which an error begins.
    std::string file;
    std::string network;
    std::optional<std::string> prefix;
    bool is_prefix_found = false;  ///< In the file, not in the config.
    std::vector<std::pair<std::string, std::string>> map;
    bool strict = true;
    bool takes_optimizer = false;
  };

  Entry read(const std::string& path) const;
  std::string read_network(const Config& map) const;
  std::string find_prefix(const Entry& entry, const State& file, const State& own) const;
  WeightsMatch match(Entry& entry, const State& own) const;
  std::string load_optimizer(const Entry& entry, const State& own,
                             const UpdatesByName& updates) const;

  Config config_;
  const Networks& networks_;
  std::vector<Entry> entries_;
};

}  // namespace stepop
