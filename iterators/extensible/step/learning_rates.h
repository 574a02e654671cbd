#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// The learning rates from DL-Art-School's keys in `train`: `default_lr_scheme` and the scheme's
/// keys, `warmup_iter`, `force_lr`. Iterations count from 0; a training that begins later, by
/// `start_step`, begins with the full rate: milestones and restarts before it do not count.
class LearningRates {
 public:
  /// `train`: the part of the config. Throws UsageError for mistakes in it.
  explicit LearningRates(const Config& train);

  /// The learning rate `lr` of a group of parameters in the runtime's form, a number or a schedule.
  /// A schedule as `lr` is unchanged. `start`: where the group's milestones begin to count.
  Value of(const Value& lr, int64_t start) const;

  /// The iteration where the milestones of each group begin to count, `progressive_starts`; default
  /// 0. `groups` names the groups.
  std::vector<int64_t> starts(const std::vector<std::string>& groups) const;

  /// The iterations in which optimizers clear their state: the restarts, with `clear_state`.
  Value::List clears_at() const;

 private:
  void read_milestones();
  void read_restarts();
  void read_cosine();
  void read_warmup();
  void refuse_keys_of_others() const;
  Value by_scheme(const Value& lr, int64_t start) const;

  Config train_;
  int64_t first_;       ///< The iteration in which the training begins.
  std::string scheme_;  ///< Empty: no scheme.
  std::vector<int64_t> milestones_;
  double gamma_ = 1;
  std::vector<int64_t> restarts_;
  std::vector<double> weights_;
  std::vector<int64_t> periods_;
  int64_t hold_ = 0;  ///< Iterations before the first fall.
  double lowest_ = 0;
  int64_t warmup_ = 0;      ///< Iterations until the full rate.
  double warmup_from_ = 0;  ///< The fraction of the rate in iteration 0.
  bool clears_state_ = false;
};

}  // namespace stepop::extensible
