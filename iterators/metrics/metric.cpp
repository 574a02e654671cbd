#include "iterators/metrics/metric.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>

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

/// The callback: a metric over the outputs of an evaluation.
Logs metric_of_outputs(const CallbackArguments& arguments) {
  using From = RowValues::From;
  const Config& params = arguments.params;
  const auto metric = metric_classes().build(params, "metric");
  const RowValues prediction(arguments, params.get("prediction", "logits"), "prediction",
                             From::kFile);
  const RowValues target(arguments, params.get("target", "class"), "target", From::kFileOrDataset);
  // Classes become int64, whatever the file has.
  const int64_t rows =
      std::min(prediction.rows_per_block(), rows_of_block(target.shape(), at::kLong));
  for_each_block(prediction.rows(), rows, [&](int64_t first, int64_t count) {
    metric->update(prediction.read(first, count), target.read(first, count));
  });
  const std::string usual = read_component(params, "metric").name;
  Logs logs;
  for (const auto& [key, value] : metric->compute()) {
    logs.scalars.set(key.empty() ? usual : key, value);
  }
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    Metric, metric_of_outputs,
    {"A metric in C++, as the metrics of training steps: top-k, F1, AUROC, mean IoU, ....",
     {{"metric", "", "{class: TopK, k: 5}: `stepop list metric` shows them"},
      {"prediction", "logits", "the key of the predictions, in the outputs or labels"},
      {"target", "class", "the key of the truth, in the outputs, labels or the dataset"}}});
STEPOP_CALLBACK_KEYS(Metric, {"prediction", KeyParameter::From::kFile}, {"target"});
STEPOP_CALLBACK_CHECK(Metric,
                      [](const Config& params) { metric_classes().build(params, "metric"); });

}  // namespace
}  // namespace stepop
