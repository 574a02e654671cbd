#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ordered_map.h"
#include "runtime/config/config.h"
#include "runtime/optim/schedule.h"

namespace stepop::losses {

/// The weights of a sum of losses, from a part of the config: a loss is on when its key is there.
///
///   color_L1: {weight: 0.5}              # a number or a schedule
///   KL: {start_ramp_it: 2000, start_ramp_val: 0, end_ramp_it: 3500, end_ramp_val: 1}
///
/// A ramp is `start_ramp_val` up to step `start_ramp_it`, `end_ramp_val` from `end_ramp_it` on, and
/// linear between. Steps are training steps that are complete.
class LossWeights {
 public:
  /// `config` is the map of the losses, `known` the names that it may have. Throws UsageError with
  /// its place for another name, for no loss at all, for a loss without a weight or with both kinds
  /// of it, and for a ramp that does not end after it began.
  LossWeights(const Config& config, const std::vector<std::string>& known);

  bool has(std::string_view name) const { return weights_.contains(name); }

  /// The weight at a step; throws Error for a loss that is not on.
  double at(std::string_view name, int64_t step) const { return weights_.at(name).at(step); }

  /// Whether the loss is on with the weight 0 at every step: it is then looked at, but not trained.
  bool is_only_watched(std::string_view name) const;

  /// The sum of weight * value at a step, [B]. Throws Error when none of `values` is on.
  at::Tensor total(const OrderedMap<at::Tensor>& values, int64_t step) const;

 private:
  static Scheduled read(const Config& loss);

  OrderedMap<Scheduled> weights_;
  std::vector<std::string> watched_;
};

}  // namespace stepop::losses
