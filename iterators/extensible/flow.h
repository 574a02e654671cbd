#pragma once

#include <vector>

#include "iterators/extensible/state.h"
#include "iterators/extensible/step.h"

namespace stepop::extensible {

/// Follows the keys of the state through the steps in every kind of iteration that the gates make,
/// in training and in evaluation. Throws UsageError, with the place, for a key that is read and
/// that nothing makes before, in any of them, and for one that is made twice. `given`: the keys of
/// a batch; `behind`: what reads keys in an evaluation, when all steps are over; `has_parts`: a
/// batch may be split.
void check_flow(const std::vector<Step>& steps, const std::vector<const Part*>& behind,
                const Keys& keys, const std::vector<Slot>& given, bool has_parts);

/// Notes after which part each key can be freed, and which each step hands on. `kept`: those that
/// are read when all steps are over.
void plan_memory(std::vector<Step>& steps, const std::vector<Slot>& kept);

/// One iteration of each kind: the parts that are on in any iteration are those that are on in one
/// of these.
std::vector<int64_t> kinds_of_iterations(const std::vector<Step>& steps,
                                         const std::vector<const Part*>& behind = {});

}  // namespace stepop::extensible
