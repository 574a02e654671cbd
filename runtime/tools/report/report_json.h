#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/tools/report/run_curves.h"

namespace stepop {

// The formats of a report's data.

using Json = nlohmann::ordered_json;

/// Six digits, more than a screen shows; null for NaN and infinity.
Json number(double value);
Json number(const std::optional<double>& value);

/// `{"step": 3, "value": 0.5}`, with a word for NaN and infinity; or null.
Json value_at(const std::optional<ScalarAt>& at);

/// `{"steps": [...], "values": [...]}`; a null value is a gap.
Json columns(const std::vector<ScalarAt>& points);

/// `lower`, `higher` or nothing.
const char* better_text(MetricDirection direction);

/// The origin of a scalar's numbers, for the page's legends: `training batches` for
/// `train/log_op/loss`, `evaluation (validation)` for `validation/eval_op/loss`.
std::string place_text(const std::string& scalar);

/// RFC 4648's base64, with padding: the format of a page's pictures.
std::string base64(std::string_view bytes);

/// Adds a part of a report; a failing part becomes a note.
template <class Add>
void add_part(const std::string& what, std::vector<std::string>& notes, const Add& add) {
  try {
    add();
  } catch (const std::exception& error) {
    notes.push_back(what + " could not be read: " + error_text(error));
  }
}

}  // namespace stepop
