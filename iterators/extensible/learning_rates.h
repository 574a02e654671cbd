#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::extensible {

/// The learning rates by the scheme of `train`, with DL-Art-School's keys: `default_lr_scheme` and
/// what belongs to it, `warmup_iter`, `force_lr`. Iterations count from 0.
class LearningRates {
 public:
  /// `train`: that part of the config. Throws UsageError for what it gets wrong.
  explicit LearningRates(const Config& train);

  /// The learning rate `lr` of a group of parameters as the runtime's config has it: a number or a
  /// schedule. One that is a schedule already is left as it is. `start`: of its milestones.
  Value of(const Value& lr, int64_t start) const;

  /// Where the milestones of each group begin to count, `progressive_starts`; 0 without them.
  /// `groups` names the groups.
  std::vector<int64_t> starts(const std::vector<std::string>& groups) const;

  /// The iterations in which optimizers begin anew: the restarts, with `clear_state`.
  Value::List clears_at() const;

 private:
  void read_milestones();
  void read_restarts();
  void read_cosine();
  void read_warmup();
  void refuse_keys_of_others() const;
  Value by_scheme(const Value& lr, int64_t start) const;

  Config train_;
  std::string scheme_;  ///< Empty: none.
  std::vector<int64_t> milestones_;
  double gamma_ = 1;
  std::vector<int64_t> restarts_;
  std::vector<double> weights_;
  std::vector<int64_t> periods_;
  int64_t hold_ = 0;  ///< Iterations before the first fall.
  double lowest_ = 0;
  int64_t warmup_ = 0;      ///< Iterations until the rate counts in full.
  double warmup_from_ = 0;  ///< The part of it in iteration 0.
  bool clears_state_ = false;
};

}  // namespace stepop::extensible
