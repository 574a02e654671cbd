#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/session/non_finite_record.h"

namespace stepop {

/// Why a training ends without an error.
struct StopReason {
  enum class Kind { kNone, kDone, kMetric, kHook, kTime, kStep, kSignal, kChange, kRewind };
  Kind kind = Kind::kNone;
  std::string text;  ///< `all 230 steps are done`
  int signal = 0;
};

/// `done`, `stopped` or `changed`: RunInfo::ended.
std::string end_of(StopReason::Kind kind);

/// The line below an error that says what was saved: `the state after step 12 was saved`.
std::string saved_text(int64_t step);

/// The current exception, as the error with which the training ends: with the text about what was
/// `saved`, or with advice after a NaN or a metric that nothing logs (ErrorWithCommand). An
/// exception that is no std::exception becomes an Error. `batch` is the training's current batch,
/// or null.
std::exception_ptr ending_error(const std::string& saved, const NonFiniteRecorder& non_finite,
                                const RunDirectory& directory, const Batch* batch = nullptr);

}  // namespace stepop
