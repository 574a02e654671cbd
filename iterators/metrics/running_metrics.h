#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "iterators/metrics/metric.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

/// The metrics of an iterator by name, from a map of the config:
/// `metrics: {top5: {class: TopK, k: 5}, f1: F1}`. A member of the iterator; without the map it
/// does nothing. A checkpoint has the sums.
class RunningMetrics {
 public:
  /// Throws UsageError for anything but a map of metrics. `context` must outlive this.
  explicit RunningMetrics(const Context& context, const std::string& path = "metrics");
  RunningMetrics(const RunningMetrics&) = delete;
  RunningMetrics& operator=(const RunningMetrics&) = delete;

  /// For a train op: gathers a batch. Does not wait for a GPU.
  void update(const at::Tensor& prediction, const at::Tensor& target);

  /// For a log op of any split: adds the metrics to its scalars, by their names; `f1/<name>` for a
  /// metric with several values. In the split train they are those of all batches since the last
  /// log, and begin anew; without such a batch and in other splits, of the batch at hand. Over all
  /// processes: each process calls this at the same step.
  void add_to(Logs& logs, const at::Tensor& prediction, const at::Tensor& target);

 private:
  using Metrics = OrderedMap<std::unique_ptr<Metric>>;

  Metrics build() const;
  void gather(const Metrics& metrics, const at::Tensor& prediction, const at::Tensor& target) const;
  void share(const Metrics& metrics) const;
  State save() const;
  void load(const State& state);

  const Context& context_;
  std::string path_;
  Metrics metrics_;
  int64_t updates_ = 0;  ///< Since the last log of the split train.
};

}  // namespace stepop
