#include "runtime/log/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace stepop {
namespace {

nlohmann::ordered_json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace

std::string to_json(const OrderedMap<double>& values) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [key, value] : values) json[key] = number(value);
  return json.dump();
}

void Metrics::write(const Event& event, const OrderedMap<double>& values) {
  if (values.empty()) return;
  nlohmann::ordered_json line;
  line["step"] = event.step;
  line["epoch"] = std::round(event.epoch * 1e6) / 1e6;
  line["samples"] = event.samples;
  line["time"] = std::round(event.seconds * 1e3) / 1e3;
  for (const auto& [key, value] : values) line[key] = number(value);
  file_.append(line.dump() + "\n");
}

}  // namespace stepop
