#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop::extensible {

/// What is done with a batch before the steps, by keys of `train`: in how many parts it goes
/// through them, whose gradients add up (`mega_batch_factor`, and `mod_batch_factor` in each
/// iteration that `mod_batch_factor_every` divides); in which order its examples are (`sort_key`, a
/// tensor [B] of it: the largest first); how long its sequences are (`auto_collate`: the last
/// dimension of a tensor `x` is cut to the largest of `x_lengths`, [B]).
class BatchRules {
 public:
  /// `train`: that part of the config. Throws UsageError for a bad value.
  explicit BatchRules(const Config& train);

  int64_t most_parts() const { return std::max(parts_, other_parts_); }
  int64_t parts(int64_t iteration) const;

  /// By `auto_collate`.
  Batch cut(const Batch& batch) const;
  /// By `sort_key`; for a training alone, as the outputs of an evaluation are in the order of the
  /// dataset. Throws UsageError when the batch lacks it.
  Batch sorted(const Batch& batch) const;

 private:
  Config train_;
  int64_t parts_;
  int64_t other_parts_ = 0;  ///< 0: always `parts_`.
  int64_t other_every_ = 1;
  std::string sort_key_;  ///< Empty: none.
  bool cuts_lengths_;
};

}  // namespace stepop::extensible
