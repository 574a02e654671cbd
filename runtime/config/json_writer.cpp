#include "runtime/config/json_writer.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace stepop {
namespace {

/// Keeps floats that are whole numbers apart from integers.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return nlohmann::json(value).dump();
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_float()) return number(value.as_float());
  if (value.is_text()) return quoted(value.as_text());
  std::string out;
  if (value.is_list()) {
    for (const auto& item : value.as_list()) out += (out.empty() ? "" : ", ") + to_json(item);
    return "[" + out + "]";
  }
  for (const auto& [key, item] : value.as_map()) {
    out += (out.empty() ? "" : ", ") + quoted(key) + ": " + to_json(item);
  }
  return "{" + out + "}";
}

}  // namespace stepop
