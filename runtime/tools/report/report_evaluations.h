#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"
#include "runtime/tools/report/report_json.h"
#include "runtime/tools/report/run_curves.h"

namespace stepop {

// What a report says about the evaluations of the run in the folder `root`. What of them cannot be
// read becomes one of `notes`.

/// The table of their scalars: its columns, a row for each evaluation, at most 300 of them.
Json evaluations_json(const std::string& root, const RunCurves& curves, const Value& config,
                      std::vector<std::string>& notes);

/// The worst examples of the newest one, best of one that came to its end.
struct WorstJson {
  Json json;                  ///< Null without any.
  int64_t picture_bytes = 0;  ///< Of all its pictures, before they became base64.
};
WorstJson worst_json(const std::string& root, size_t count, int64_t most_picture_bytes,
                     std::vector<std::string>& notes);

}  // namespace stepop
