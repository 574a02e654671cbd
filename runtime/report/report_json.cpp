#include "runtime/report/report_json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "runtime/base/number_text.h"

namespace stepop {

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json value_at(const std::optional<ScalarAt>& at) {
  if (!at) return nullptr;
  Json value = number(at->value);
  if (value.is_null()) value = short_number(at->value);
  return {{"step", at->step}, {"value", value}};
}

Json columns(const std::vector<ScalarAt>& points) {
  Json steps = Json::array();
  Json values = Json::array();
  for (const ScalarAt& point : points) {
    steps.push_back(point.step);
    values.push_back(number(point.value));
  }
  return {{"steps", steps}, {"values", values}};
}

const char* better_text(Better better) {
  if (better == Better::kUnknown) return "";
  return better == Better::kLower ? "lower" : "higher";
}

}  // namespace stepop
