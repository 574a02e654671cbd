#pragma once

#include <string_view>

#include "eval_out/callbacks/callback.h"

namespace stepop {

/// The class that runs metrics of Python packages.
inline constexpr const char* kPythonMetric = "PythonMetric";

/// Finds mistakes before the run starts: throws UsageError for parameters that no metric takes, and
/// when Python is missing. Which metrics there are is known only in Python, at the first
/// evaluation.
void check_python_metric(const Config& config, std::string_view path, const Config& params);

}  // namespace stepop
