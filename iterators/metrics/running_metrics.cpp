#include "iterators/metrics/running_metrics.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/optim/schedule.h"

namespace stepop {
namespace {

constexpr const char* kMadeOf = "made_of";
constexpr const char* kUpdates = "updates";

/// A number for what sums are of: the config of the metrics, and the number of processes.
int64_t made_of(const Context& context, const std::string& path) {
  const std::string text =
      fmt::format("{} {}", context.world.size(), to_yaml(*context.config.peek(path)));
  return static_cast<int64_t>(seed_of(text) >> 1);
}

}  // namespace

RunningMetrics::RunningMetrics(const Context& context, const std::string& path)
    : context_(context), path_(path) {
  if (!context.config.has(path)) return;
  const Value& value = *context.config.peek(path);
  if (!value.is_map()) {
    throw context.config.error(
        path, "expected a map of names and metrics, such as {f1: F1}, found " + value.describe());
  }
  metrics_ = build();
  if (metrics_.empty()) return;
  // Tracked as the state of a hook is: a resume may have other metrics.
  const Tracker::Prefix prefix(context.tracker, std::string(kHooksPrefix));
  std::string name = path;
  std::ranges::replace(name, '/', '_');
  context.track(
      name, [this] { return save(); }, [this](const State& state) { load(state); });
}

RunningMetrics::Metrics RunningMetrics::build() const {
  Metrics metrics;
  const Config config = context_.config.at(path_);
  for (const auto& name : config.keys()) {
    if (config.has(name)) metrics.set(name, metric_classes().build(config, name));
  }
  return metrics;
}

void RunningMetrics::gather(const Metrics& metrics, const at::Tensor& prediction,
                            const at::Tensor& target) const {
  const at::NoGradGuard no_grad;
  const bool counts = context_.position.share > 0;
  const at::Tensor detached = prediction.detach();
  for (const auto& [name, metric] : metrics) {
    try {
      metric->update(counts ? detached : detached.slice(0, 0, 0),
                     counts ? target : target.slice(0, 0, 0));
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}/{}: {}", path_, name, error_text(error)));
    }
  }
}

/// Adds the sums of all processes.
void RunningMetrics::share(const Metrics& metrics) const {
  if (context_.world.is_alone()) return;
  std::vector<at::Tensor> parts;
  for (const auto& [name, metric] : metrics) {
    metric->align([&](const at::Tensor& tensor) { context_.world.max(tensor); });
    for (const auto& [key, sum] : metric->sums()) parts.push_back(sum.flatten().cpu());
  }
  const at::Tensor all = at::cat(parts);
  context_.world.sum(all);
  int64_t begin = 0;
  for (const auto& [name, metric] : metrics) {
    for (auto& [key, sum] : metric->sums()) {
      const int64_t length = sum.numel();
      sum = all.narrow(0, begin, length).view(sum.sizes());
      begin += length;
    }
  }
}

void RunningMetrics::update(const at::Tensor& prediction, const at::Tensor& target) {
  if (metrics_.empty()) return;
  StepReads::note("the sums of metrics");
  gather(metrics_, prediction, target);
  ++updates_;
}

void RunningMetrics::add_to(Logs& logs, const at::Tensor& prediction, const at::Tensor& target) {
  if (metrics_.empty()) return;
  const bool is_gathered = context_.position.split == "train" && updates_ > 0;
  if (is_gathered && context_.clock.logs_part) return;  // the last batch of the step logs all
  const Metrics of_batch = is_gathered ? Metrics() : build();
  const Metrics& metrics = is_gathered ? metrics_ : of_batch;
  if (!is_gathered) gather(metrics, prediction, target);
  share(metrics);
  for (const auto& [name, metric] : metrics) {
    for (const auto& [key, value] : metric->compute()) {
      const std::string full = key.empty() ? name : name + "/" + key;
      if (logs.scalars.contains(full)) {
        throw Error(
            fmt::format("{}/{}: the log op has a number of that name; give the metric "
                        "another name",
                        path_, full));
      }
      logs.scalars.set(full, value);
    }
    metric->reset();
  }
  if (is_gathered) updates_ = 0;
}

State RunningMetrics::save() const {
  State state{{kMadeOf, at::scalar_tensor(made_of(context_, path_), at::kLong)},
              {kUpdates, at::scalar_tensor(updates_, at::kLong)}};
  for (const auto& [name, metric] : metrics_) {
    for (const auto& [key, sum] : metric->sums()) state.emplace(name + "/" + key, sum);
  }
  return state;
}

/// Begins anew where the sums are of other metrics, or of another number of processes.
void RunningMetrics::load(const State& state) {
  updates_ = 0;
  for (const auto& [name, metric] : metrics_) metric->reset();
  const auto found = state.find(kMadeOf);
  if (found == state.end() || found->second.item<int64_t>() != made_of(context_, path_)) return;
  updates_ = state.at(kUpdates).item<int64_t>();
  for (const auto& [name, metric] : metrics_) {
    const std::string prefix = name + "/";
    for (auto sum = state.lower_bound(prefix); sum != state.end() && sum->first.starts_with(prefix);
         ++sum) {
      metric->sums().emplace(sum->first.substr(prefix.size()), sum->second.to(context_.device));
    }
  }
}

}  // namespace stepop
