#include "runtime/tools/report/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "runtime/core/base/number_text.h"
#include "runtime/core/value/value.h"

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

const char* better_text(MetricDirection direction) {
  if (direction == MetricDirection::kUnknown) return "";
  return direction == MetricDirection::kLower ? "lower" : "higher";
}

std::string place_text(const std::string& scalar) {
  const std::vector<std::string> parts = split_path(scalar);
  if (parts.size() < 2) return scalar;
  const bool has_op = parts.size() > 2;
  if (parts[0] == "runtime") return has_op ? parts[1] : "training";
  const std::string split = parts[0] == "train" ? "training" : parts[0];
  if (!has_op) return split;
  if (parts[1] == "train_op") return split + " steps";
  if (parts[1] == "log_op") return split + " batches";
  if (parts[1] == "eval_op") return "evaluation (" + split + ")";
  const std::string& op = parts[1];
  return split + ", " + (op.ends_with("_op") ? op.substr(0, op.size() - 3) : op);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(bytes.size() - i, 3);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

}  // namespace stepop
