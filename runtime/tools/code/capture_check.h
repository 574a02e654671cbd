#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// Finds ops that capture by reference, `.train_op = [&] { ... }`: `step_op` has returned when they
/// run, and the compiler does not warn. Returns a message for each op, which begins with
/// `file:line:`, in the order of the source; messages use `file` as the name.
///
/// The check only reads text. It finds lambdas that are assigned to a member of StepOps by its name
/// (`.train_op = [...]`, `ops.log_op = [...]`, `.log_ops = {{"sample_op", [...]}}`), to a TrainOp,
/// LogOp or EvalOp, first in `return {...}` of a step_op, or to a variable that becomes an op. All
/// other captures are allowed, including `[x = &y]` and captures in macros.
std::vector<std::string> check_captures(std::string_view source, const std::string& file);

}  // namespace stepop
