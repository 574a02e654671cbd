#include "iterators/metrics/metric.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

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

struct MetricParams {
  std::unique_ptr<Metric> metric;
  std::string prediction = "logits";
  std::string target = "class";

  void declare(Parameters& p) {
    add_metric(p);
    p.add("prediction", prediction, "the key of the predictions, in the outputs or labels");
    p.add("target", target, "the key of the truth, in the outputs, labels or the dataset");
  }

  void add_metric(Parameters& p) {
    const Config* config = p.describe_required(
        "metric", "component metric", "{class: TopK, k: 5}: `stepop list metric` shows them");
    if (config != nullptr) metric = metric_classes().build(*config, "metric");
  }
};

/// The callback: a metric over the outputs of an evaluation.
Logs metric_of_outputs(const CallbackArguments& arguments, const MetricParams& params) {
  using From = RowValues::From;
  const auto& metric = params.metric;
  const RowValues prediction(arguments, params.prediction, "prediction", From::kFile);
  const RowValues target(arguments, params.target, "target", From::kFileOrDataset);
  // Classes become int64, whatever the file has.
  const int64_t rows =
      std::min(prediction.rows_per_block(), rows_of_block(target.shape(), at::kLong));
  for_each_block(prediction.rows(), rows, [&](int64_t first, int64_t count) {
    metric->update(prediction.read(first, count), target.read(first, count));
  });
  const std::string usual = read_component(arguments.params, "metric").name;
  Logs logs;
  for (const auto& [key, value] : metric->compute()) {
    logs.scalars.set(key.empty() ? usual : key, value);
  }
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    Metric, metric_of_outputs,
    {"A metric in C++, as the metrics of training steps: top-k, F1, AUROC, mean IoU, ...."});
STEPOP_CALLBACK_KEYS(Metric, {"prediction", KeyParameter::From::kFile}, {"target"});
STEPOP_CALLBACK_CHECK(Metric, [](const Config& params) {
  Parameters reader(params);
  MetricParams().add_metric(reader);
});

}  // namespace
}  // namespace stepop
