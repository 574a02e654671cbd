#include "runtime/log/metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/json_text.h"

namespace stepop {
std::string to_json(const OrderedMap<double>& values) {
  std::string json;
  for (const auto& [key, value] : values) {
    json += fmt::format("{}{}:{}", json.empty() ? "{" : ",", json_text(key), json_number(value));
  }
  return json.empty() ? "{}" : json + "}";
}

void Metrics::write(const Event& event, const OrderedMap<double>& values) {
  if (values.empty()) return;
  const double epoch = std::round(event.epoch * 1e6) / 1e6;
  const double seconds = std::round(event.seconds * 1e3) / 1e3;
  file_.append(fmt::format("{{\"step\":{},\"epoch\":{},\"samples\":{},\"time\":{},{}\n", event.step,
                           json_number(epoch), event.samples, json_number(seconds),
                           to_json(values).substr(1)));
}

}  // namespace stepop
