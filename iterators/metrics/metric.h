#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/core/components/registry.h"
#include "runtime/core/formats/state.h"
#include "runtime/core/log/logs.h"

namespace stepop {

/// A metric in sums over batches: of the steps between two logs, or of an evaluation. All sums are
/// float64 tensors on the device of the predictions, so those of several processes can be added.
class Metric {
 public:
  virtual ~Metric() = default;

  /// Adds a batch to the sums, without gradients. A batch may have no examples: it adds zeros of
  /// the usual shapes. A number that is read on the host (`item()`) would make steps wait for a
  /// GPU.
  virtual void update(const at::Tensor& prediction, const at::Tensor& target) = 0;

  /// The values of all batches since the last reset, by name; an only value has an empty name.
  /// Called after an update.
  virtual Scalars compute() const = 0;

  /// Called before the sums of all processes are added, for sums of distances to a number that must
  /// first be the same everywhere; `maximum` replaces a CPU tensor by the maximum over all
  /// processes.
  virtual void align(const std::function<void(const at::Tensor&)>& maximum) { (void)maximum; }

  void reset() { sums_.clear(); }
  State& sums() { return sums_; }

 protected:
  /// Adds `value` to the sum of that name, which begins at 0.
  void add(const std::string& name, const at::Tensor& value);
  const at::Tensor& sum(const std::string& name) const { return sums_.at(name); }

 private:
  State sums_;
};

/// The target of examples and pixels that no metric of classes counts, as in cross entropy.
inline constexpr int64_t kLeftOutTarget = -100;

using MetricRegistry = Registry<std::unique_ptr<Metric>(const Config& params)>;
MetricRegistry& metric_classes();

/// Registers a metric for `metrics` and, with the keys `prediction` and `target` besides, for
/// `eval_callbacks`.
bool register_metric(Registration registration, const MetricRegistry::Factory& factory);

}  // namespace stepop

/// Registers a Metric with a constructor from its `Params`, `const stepop::Config&`, or both.
#define STEPOP_REGISTER_METRIC(Class, ...)                                            \
  [[maybe_unused]] static const bool STEPOP_CONCAT(stepop_registered_, __COUNTER__) = \
      ::stepop::register_metric(                                                      \
          {#Class, ::stepop::about_class<Class>(__VA_ARGS__), __FILE__, __LINE__},    \
          [](const ::stepop::Config& params) -> std::unique_ptr<::stepop::Metric> {   \
            return ::stepop::make_component<Class>(params);                           \
          })
