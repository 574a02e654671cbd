#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A mistake at a place of a user's source.
struct CaptureFinding {
  int line = 0;      ///< From 1.
  int column = 0;    ///< Of the `[`, from 1.
  std::string text;  ///< The whole message, which begins with `file:line: `.
};

/// Finds ops that capture by reference: `step_op` has returned when they run. A compiler takes
/// them.
///
/// An op is a lambda that becomes a member of StepOps by its name (`.train_op = [...]`,
/// `ops.log_op = [...]`, `.log_ops = {{"sample_op", [...]}}`), by its place in the braces of one,
/// as a TrainOp, LogOp or EvalOp, or by way of a variable; directly, in parentheses, in std::move,
/// or as a branch of `? :`. Lambdas elsewhere may capture as they like, those inside of an op's
/// body as well. `[x = &y]` is allowed: who takes an address means it.
///
/// `file` is how messages name the source. Findings are in the order of the source. Nothing is
/// expanded: what a macro makes is not seen.
std::vector<CaptureFinding> check_captures(std::string_view source, const std::string& file);

}  // namespace stepop
