#pragma once

#include <cstdint>
#include <string>

#include "eval_out/callbacks/callback.h"

namespace stepop {

/// What the callbacks over one evaluation came to.
struct CallbackScalars {
  OrderedMap<double> scalars;        ///< By full name: `validation/eval_op/accuracy/accuracy`.
  OrderedMap<std::string> failures;  ///< The message of each callback that failed.
};

/// Where the config names the callbacks of an evaluation.
inline constexpr const char* kEvalCallbacks = "eval_hook/eval_callbacks";

/// Runs the callbacks of the config's `eval_hook/eval_callbacks` over the finished file `data_out`,
/// in training and afterwards alike. What they write goes to `folder`, their images to
/// `folder`/<callback>/<name>_<step>.png. `op` is what the file came out of,
/// `validation/eval_op`. A callback that throws, or returns what is no scalar or no image, is a
/// failure and stops no other; Interrupted passes, and so does the Error of an image that cannot be
/// written.
CallbackScalars look_at_outputs(const Config& config, const std::string& op, int64_t step,
                                const std::string& folder, const Dataset& data_in,
                                const EvalFile& data_out);

}  // namespace stepop
