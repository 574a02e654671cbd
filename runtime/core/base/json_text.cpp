#include "runtime/core/base/json_text.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace stepop {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

std::string json_number(double value, NonFiniteJson non_finite) {
  if (std::isfinite(value)) return nlohmann::json(value).dump();
  const std::string word = std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  return non_finite == NonFiniteJson::kText ? "\"" + word + "\"" : word;
}

std::optional<double> non_finite_number(std::string_view word) {
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (word == "Infinity") return kInfinity;
  if (word == "-Infinity") return -kInfinity;
  return std::nullopt;
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace stepop
