#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "runtime/tools/report/report_json.h"
#include "runtime/tools/report/run_curves.h"

namespace stepop {

// A report's data on the evaluations of the run in the folder `root`. Unreadable parts become
// `notes`.

/// The table of their scalars: its columns, and a row for each of at most 300 evaluations.
Json evaluations_json(const std::string& root, const RunCurves& curves, const Value& config,
                      std::vector<std::string>& notes);

/// The worst examples of the newest evaluation, preferably a complete one.
struct WorstJson {
  Json json;                  ///< Null without examples.
  int64_t picture_bytes = 0;  ///< The size of all pictures, before base64.
};
WorstJson worst_json(const std::string& root, size_t count, int64_t most_picture_bytes,
                     std::vector<std::string>& notes);

}  // namespace stepop
