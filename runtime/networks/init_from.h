#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/networks/weights_match.h"

namespace stepop {

class Networks;

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
