#include "runtime/log/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/error.h"

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

Metrics::Metrics(std::string path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw Error(fmt::format("{}: cannot open the metrics: {}", path_, std::strerror(errno)));
  }
}

Metrics::~Metrics() { ::close(file_); }

void Metrics::write(const Event& event, const OrderedMap<double>& values) {
  if (values.empty()) return;
  nlohmann::ordered_json line;
  line["step"] = event.step;
  line["epoch"] = std::round(event.epoch * 1e6) / 1e6;
  line["samples"] = event.samples;
  line["time"] = std::round(event.seconds * 1e3) / 1e3;
  for (const auto& [key, value] : values) line[key] = number(value);
  const std::string text = line.dump() + "\n";
  const ssize_t count = ::write(file_, text.data(), text.size());
  if (count != static_cast<ssize_t>(text.size())) {
    throw Error(fmt::format("{}: cannot write the metrics: {}", path_,
                            count < 0 ? std::strerror(errno) : "the disk is full"));
  }
}

}  // namespace stepop
