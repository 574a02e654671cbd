#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/train/loop/non_finite_record.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// Why a training ends without an error.
struct StopReason {
  enum class Kind { kNone, kDone, kMetric, kHook, kTime, kStep, kSignal, kChange };
  Kind kind = Kind::kNone;
  std::string text;  ///< `all 230 steps are done`
  int signal = 0;
};

/// The line below an error that says what was saved: `the state after step 12 was saved`.
std::string saved_text(int64_t step);

/// The exception at hand as the training ends by it: with what was `saved` before, or with what
/// helps after a NaN or a metric that nothing logs (ErrorWithCommand). What is no std::exception
/// becomes an Error. `batch` is that of the training at hand, or null.
std::exception_ptr ending_error(const std::string& saved, const NonFiniteRecorder& non_finite,
                                const RunDirectory& directory, const Batch* batch = nullptr);

}  // namespace stepop
