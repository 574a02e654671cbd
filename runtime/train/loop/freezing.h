#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// Parameters that are not trained for a time: `freeze: [{match: "^model\\.encoder", until: 5e},
/// {match: "head", from: 1000}]`. `match` is a regular expression for any part of the name with
/// that of its network, `model.encoder.weight`, or without (`find_names`); `from` and `until` are
/// steps (100) or epochs (5e), by default the whole training. Nothing computes the gradients of a
/// frozen parameter, and no optimizer changes it, not even by weight decay. Which are frozen
/// depends on the step alone.
class Freezing {
 public:
  /// Freezes nothing.
  Freezing() = default;
  /// Reads `freeze`, which may be missing. Throws UsageError with its place for a bad rule, and for
  /// one that matches no parameter.
  Freezing(const Config& config, const Networks& networks, int64_t steps_per_epoch);

  /// Makes the keys of `freeze` known where nothing is trained.
  static void declare(const Config& config);

  /// To be called before the step that follows `step` complete ones.
  void begin_step(int64_t step);

  /// Throws UsageError when there is a step from `step` complete ones on, and before `num_steps`,
  /// in which no parameter that `updates` have is trained.
  void check_some_trained(const Config& config, const Networks::Updates& updates, int64_t step,
                          int64_t num_steps) const;

  /// The step from which each rule holds.
  std::vector<int64_t> begins() const;

  /// `freeze    model.encoder: 12 parameters until step 500`, one line a rule.
  std::vector<std::string> descriptions() const;

 private:
  struct Rule {
    std::string match;
    int64_t from = 0;
    int64_t until = 0;
    std::vector<size_t> parameters;  ///< Positions in `parameters_`.
  };

  /// Whether each of `parameters_` is frozen in the step that follows `step` complete ones.
  std::vector<char> frozen_at(int64_t step) const;

  std::vector<Rule> rules_;
  std::vector<at::Tensor> parameters_;
  std::vector<int64_t> changes_;  ///< Steps at which a rule begins or ends, ascending.
  int64_t last_step_ = -1;        ///< That was begun.
};

}  // namespace stepop
