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

// How the parts of a report's data are written.

using Json = nlohmann::ordered_json;

/// With six digits, which is more than a screen shows; null for what is not finite.
Json number(double value);
Json number(const std::optional<double>& value);

/// `{"step": 3, "value": 0.5}`, with a word for what JSON has no number for; or null.
Json value_at(const std::optional<ScalarAt>& at);

/// `{"steps": [...], "values": [...]}`; of the values null is a gap.
Json columns(const std::vector<ScalarAt>& points);

/// `lower`, `higher` or nothing.
const char* better_text(MetricDirection direction);

/// Where the numbers of a scalar come from, as the legends of the page say it: `training batches`
/// for `train/log_op/loss`, `evaluation (validation)` for `validation/eval_op/loss`.
std::string place_text(const std::string& scalar);

/// RFC 4648's base64, with padding: how a page holds a picture.
std::string base64(std::string_view bytes);

/// Adds a part of a report; one that fails becomes a note.
template <class Add>
void add_part(const std::string& what, std::vector<std::string>& notes, const Add& add) {
  try {
    add();
  } catch (const std::exception& error) {
    notes.push_back(what + " could not be read: " + error_text(error));
  }
}

}  // namespace stepop
