#include "runtime/train/session/telemetry.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/core/base/text.h"
#include "runtime/core/config/read_pattern.h"
#include "runtime/core/measure/device_memory.h"
#include "runtime/core/measure/resident_memory.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// 10^6 bytes, as in size_text.
constexpr double kMegabyte = 1e6;

}  // namespace

std::set<std::string> counted_parameters(const Context& context,
                                         const TelemetrySettings& settings) {
  std::set<std::string> counted;
  std::vector<std::string> all;
  for (const auto& [update, its] : context.updates) {
    const NamedParameters& parameters = its->optimizer().parameters();
    std::vector<std::string> names;
    for (const auto& [name, tensor] : parameters) names.push_back(name);
    for (const size_t at : find_names(settings.parameters, names, parameters.other_names())) {
      counted.insert(update + "/" + names[at]);
    }
    all.insert(all.end(), names.begin(), names.end());
  }
  if (!counted.empty() || all.empty()) return counted;
  constexpr const char* kKey = "telemetry/parameters";
  throw context.config.error(kKey,
                             fmt::format("{} matches no parameter; the parameters are: {}",
                                         context.config.peek(kKey)->describe(), list_text(all)));
}

Telemetry::Telemetry(const Context& context, const TelemetrySettings& settings)
    : context_(context),
      settings_(settings),
      counted_(counted_parameters(context, settings)),
      steps_(context.position.global_step),
      samples_(context.position.samples_seen) {}

Telemetry::~Telemetry() {
  for (const auto& [name, update] : context_.updates) update->watch_gradients(this, {});
}

void Telemetry::begin_step(bool is_logged, const Elapsed& before, const Elapsed& after) {
  norms_.clear();
  gradients_.clear();
  is_taken_ = false;
  const bool counts = settings_.gradients.is_due(before, after);
  for (const auto& [name, update] : context_.updates) {
    if (settings_.is_active && (is_logged || counts)) {
      update->watch_gradients(this, [this, counts, of = name](const NamedParameters& parameters) {
        look_at_gradients(of, parameters, counts);
      });
    } else {
      update->watch_gradients(this, {});
    }
  }
}

void Telemetry::look_at_gradients(const std::string& update, const NamedParameters& parameters,
                                  bool counts) {
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.grad().defined()) continue;
    const at::Tensor gradient = numbers_of(parameter.grad());
    all.push_back(gradient);
    if (counts && counted_.contains(update + "/" + name)) {
      gradients_.set(fmt::format("{}/gradients/{}", update, name), gradient.clone());
    }
  }
  norms_.set(update, norm_of(all));
}

bool Telemetry::counts_weights(const Elapsed& before, const Elapsed& now) const {
  return now.step == 0 ? settings_.weights.at_start() : settings_.weights.is_due(before, now);
}

bool Telemetry::is_due(const Elapsed& before, const Elapsed& now) const {
  return settings_.is_active && !is_taken_ && (counts_weights(before, now) || !gradients_.empty());
}

Logs Telemetry::take(const Elapsed& before, const Elapsed& now) {
  Logs logs;
  if (!settings_.is_active || std::exchange(is_taken_, true)) return logs;
  add_rates(logs);
  add_speed(logs);
  add_memory(logs);
  logs.histograms = std::exchange(gradients_, {});
  if (counts_weights(before, now)) add_weights(logs);
  return logs;
}

void Telemetry::add_rates(Logs& logs) const {
  for (const auto& [name, update] : context_.updates) {
    const std::vector<double> rates = update->lrs();
    logs.scalars.set(name + "/lr", rates.back());
    for (size_t i = 0; i + 1 < rates.size(); ++i) {
      logs.scalars.set(fmt::format("{}/lr_{}", name, i), rates[i]);
    }
    if (const at::Tensor* norm = norms_.find(name)) logs.scalars.set(name + "/grad_norm", *norm);
    // A copy: the next update changes the number.
    if (const at::Tensor scale = update->loss_scale(); scale.defined()) {
      logs.scalars.set(name + "/loss_scale", scale.clone());
    }
  }
}

void Telemetry::add_speed(Logs& logs) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const Position& position = context_.position;
  if (position.global_step > steps_ && seconds > 0) {
    logs.scalars.set("examples_per_second",
                     static_cast<double>(position.samples_seen - samples_) / seconds);
    logs.scalars.set("data_wait", std::chrono::duration<double>(waited_).count() / seconds);
  }
  begin_ = now;
  waited_ = {};
  steps_ = position.global_step;
  samples_ = position.samples_seen;
}

void Telemetry::add_memory(Logs& logs) const {
  if (const double bytes = resident_bytes(); bytes > 0) {
    logs.scalars.set("process_mb", bytes / kMegabyte);
  }
  const auto memory = device_memory(context_.device);
  if (!memory) return;
  logs.scalars.set("device_mb", memory->in_tensors / kMegabyte);
  logs.scalars.set("device_peak_mb", memory->most_in_tensors / kMegabyte);
}

void Telemetry::add_weights(Logs& logs) const {
  for (const auto& [update, its] : context_.updates) {
    for (const auto& [name, parameter] : its->optimizer().parameters()) {
      if (!counted_.contains(update + "/" + name)) continue;
      logs.histograms.set(fmt::format("{}/weights/{}", update, name), parameter.detach());
    }
  }
}

}  // namespace stepop
