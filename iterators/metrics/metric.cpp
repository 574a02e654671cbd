#include "iterators/metrics/metric.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "eval_out/callbacks/row_values.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {

MetricRegistry& metric_classes() {
  static MetricRegistry registry("metric");
  return registry;
}

void Metric::add(const std::string& name, const at::Tensor& value) {
  at::Tensor& total = sums_[name];
  if (!total.defined()) {
    total = value.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
    return;
  }
  if (total.sizes() != value.sizes()) {
    throw Error(fmt::format("the sum \"{}\" is {} from earlier batches; this batch adds {}", name,
                            describe_tensor(total), describe_tensor(value)));
  }
  total = total + value;
}

namespace {

/// The keys of a metric over the outputs of an evaluation, besides its own.
struct MetricKeys {
  std::string prediction = "logits";
  std::string target = "class";

  void declare(Parameters& p) {
    p.add("prediction", prediction, "the key of the predictions, in the outputs or labels");
    p.add("target", target, "the key of the truth, in the outputs, labels or the dataset");
  }
};

/// A metric over the outputs of an evaluation. An only value is logged as `name`.
Logs metric_of_outputs(const CallbackArguments& arguments, const MetricKeys& keys, Metric& metric,
                       const std::string& name) {
  using From = RowValues::From;
  const RowValues prediction(arguments, keys.prediction, "prediction", From::kFile);
  const RowValues target(arguments, keys.target, "target", From::kFileOrDataset);
  // Classes become int64, whatever the file has.
  const int64_t rows =
      std::min(prediction.rows_per_block(), rows_of_block(target.shape(), at::kLong));
  for_each_block(prediction.rows(), rows, [&](int64_t first, int64_t count) {
    metric.update(prediction.read(first, count), target.read(first, count));
  });
  Logs logs;
  for (const auto& [key, value] : metric.compute()) {
    logs.scalars.set(key.empty() ? name : key, value);
  }
  return logs;
}

void register_callback(const Registration& metric, const MetricRegistry::Factory& factory) {
  Registration callback = metric;
  // It is listed once, as a metric.
  callback.about.is_alias = true;
  const auto keys = parameters_of<MetricKeys>();
  callback.about.parameters.insert(callback.about.parameters.end(), keys.begin(), keys.end());
  callbacks().add(callback, [name = metric.name, factory](const CallbackArguments& arguments) {
    const auto made = factory(arguments.params);
    return metric_of_outputs(arguments, read_parameters<MetricKeys>(arguments.params), *made, name);
  });
  if (keys_of_callbacks().contains(metric.name)) return;  // a callback of that name
  keys_of_callbacks().set(metric.name, {{"prediction", KeyParameter::From::kFile}, {"target"}});
  callback_checks().set(metric.name, [factory](const Config& params) { factory(params); });
}

/// The callback of 0.1.0, whose metric is a part of the config.
struct WrappedMetric {
  std::unique_ptr<Metric> metric;
  MetricKeys keys;

  void declare(Parameters& p) {
    add_metric(p);
    keys.declare(p);
  }

  void add_metric(Parameters& p) {
    const Config* config = p.describe_required(
        "metric", "component metric", "{class: TopK, k: 5}: `stepop list metric` shows them");
    if (config != nullptr) metric = metric_classes().build(*config, "metric");
  }
};

Logs wrapped_metric(const CallbackArguments& arguments, const WrappedMetric& params) {
  return metric_of_outputs(arguments, params.keys, *params.metric,
                           read_component(arguments.params, "metric").name);
}

STEPOP_REGISTER_CALLBACK(Metric, wrapped_metric,
                         {"The metric at `metric`, which may stand here itself: {class: TopK, k: "
                          "5}.",
                          {},
                          /*is_alias=*/true});
STEPOP_CALLBACK_KEYS(Metric, {"prediction", KeyParameter::From::kFile}, {"target"});
STEPOP_CALLBACK_CHECK(Metric, [](const Config& params) {
  Parameters reader(params);
  WrappedMetric().add_metric(reader);
});

}  // namespace

bool register_metric(Registration registration, const MetricRegistry::Factory& factory) {
  register_callback(registration, factory);
  return metric_classes().add(std::move(registration), factory);
}

}  // namespace stepop
