#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// Parameters that are not trained for a time: `freeze: [{match: "^model\\.encoder", until: 5e},
/// {match: "head", from: 1000}]`. `match` is a regular expression for any part of the name, with
/// the network's name (`model.encoder.weight`) or without it (`find_names`); a tied weight is
/// frozen by each of its names. `from` and `until` are steps (100) or epochs (5e), by default the
/// whole training. No gradient of a frozen parameter is computed, and no optimizer changes it, not
/// even by weight decay. Only the step decides which parameters are frozen.
class Freezing {
 public:
  /// Freezes nothing.
  Freezing() = default;
  /// Reads `freeze`, which may be missing. Throws UsageError with its place for a bad rule, and for
  /// a rule that matches no parameter.
  Freezing(const Config& config, const Networks& networks, int64_t steps_per_epoch);

  /// To be called before the step that follows `step` complete ones.
  void begin_step(int64_t step);

  /// Throws UsageError when, between `step` complete steps and `num_steps`, there is a step in
  /// which all parameters of `updates` are frozen.
  void check_some_trained(const Config& config, const Networks::Updates& updates, int64_t step,
                          int64_t num_steps) const;

  /// The step from which each rule holds, in the order of the rules.
  std::vector<int64_t> begins() const;

  /// `freeze    model.encoder: 12 parameters until step 500`, one line per rule.
  std::vector<std::string> descriptions() const;

 private:
  struct Rule {
    std::string match;
    int64_t from = 0;
    int64_t until = 0;
    std::set<size_t> parameters;  ///< Positions in `parameters_`.
  };

  /// Whether each of `parameters_` is frozen in the step that follows `step` complete steps.
  std::vector<char> frozen_at(int64_t step) const;

  std::vector<Rule> rules_;
  std::vector<at::Tensor> parameters_;              ///< Each tensor once.
  std::vector<std::vector<std::string>> names_of_;  ///< All names of each of `parameters_`.
  std::vector<int64_t> changes_;  ///< Steps at which a rule begins or ends, ascending.
  int64_t last_step_ = -1;        ///< The last step that began.
};

}  // namespace stepop
