#pragma once

namespace stepop {

/// Of `stepop tune`, in processes that it started to be measured: what they are to do.
inline constexpr const char* kTuneVariable = "STEPOP_TUNE";
inline constexpr const char* kMeasureSteps = "steps";
inline constexpr const char* kTestRates = "rates";

/// The file into which they write their answers.
inline constexpr int kTuneAnswers = 3;

}  // namespace stepop
