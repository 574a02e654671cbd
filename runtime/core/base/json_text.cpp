#include "runtime/core/base/json_text.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace stepop {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Json>
std::string written(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_number(double value, NonFiniteJson non_finite) {
  if (std::isfinite(value)) return write_json(nlohmann::json(value));
  const std::string word = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  return non_finite == NonFiniteJson::kText ? "\"" + word + "\"" : word;
}

std::optional<double> non_finite_number(std::string_view word) {
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return kInfinity;
  if (word == "-Infinity") return -kInfinity;
  return std::nullopt;
}

std::string json_text(std::string_view text) { return write_json(nlohmann::json(text)); }

nlohmann::json read_json(std::string_view text) { return nlohmann::json::parse(text); }

nlohmann::ordered_json read_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}

nlohmann::json try_read_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::ordered_json try_read_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string write_json(const nlohmann::json& json, int indent) { return written(json, indent); }

std::string write_json(const nlohmann::ordered_json& json, int indent) {
  return written(json, indent);
}

}  // namespace stepop
