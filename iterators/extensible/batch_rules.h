#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop::extensible {

/// Prepares a batch for the steps, by keys of `train`: the number of parts into which the batch is
/// split and whose gradients are summed (`mega_batch_factor`, and `mod_batch_factor` in each
/// iteration that is a multiple of `mod_batch_factor_every`); the order of the examples
/// (`sort_key`, a tensor [B] of the batch: the largest first); the length of the sequences
/// (`auto_collate`: the last dimension of a tensor `x` is cut to the largest of `x_lengths`, [B]).
class BatchRules {
 public:
  /// `train`: the part of the config. Throws UsageError for a bad value.
  explicit BatchRules(const Config& train);

  int64_t most_parts() const { return std::max(parts_, other_parts_); }
  int64_t parts(int64_t iteration) const;

  /// Applies `auto_collate`.
  Batch cut(const Batch& batch) const;
  /// Applies `sort_key`; used in training only, since the outputs of an evaluation keep the
  /// dataset's order. Throws UsageError when the batch lacks the key.
  Batch sorted(const Batch& batch) const;

 private:
  Config train_;
  int64_t parts_;
  int64_t other_parts_ = 0;  ///< 0: always `parts_`.
  int64_t other_every_ = 1;
  std::string sort_key_;  ///< Empty: batches are not sorted.
  bool cuts_lengths_;
};

}  // namespace stepop::extensible
