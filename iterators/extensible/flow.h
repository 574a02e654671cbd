#pragma once

#include <vector>

#include "iterators/extensible/step/state.h"
#include "iterators/extensible/step/step.h"

namespace stepop::extensible {

/// Follows the keys of the state through the steps in every kind of iteration that the gates make,
/// in evaluation and, for a batch of the training, in training. Throws UsageError, with the place,
/// for a key that is read before any part makes it, and for a key that is made twice. `given`: the
/// keys of a batch; `behind`: the parts that read keys in an evaluation after all steps;
/// `has_parts`: a batch may be split; `first`: the first iteration.
void check_flow(const std::vector<Step>& steps, const std::vector<const Part*>& behind,
                const Keys& keys, const std::vector<Slot>& given, bool is_training, bool has_parts,
                int64_t first);

/// Sets the part after which each key is freed, and the keys that each step passes on. `kept`: the
/// keys that are read after all steps.
void plan_memory(std::vector<Step>& steps, const std::vector<Slot>& kept);

/// One iteration of each kind: in every iteration from `first` on, the same parts are on as in one
/// of the returned iterations.
std::vector<int64_t> kinds_of_iterations(const std::vector<Step>& steps,
                                         const std::vector<const Part*>& behind = {},
                                         int64_t first = 0);

}  // namespace stepop::extensible
