#include "runtime/core/log/weighted_mean.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace stepop {
namespace {

/// [B, ...] -> [B, numbers of an example]; [numbers] -> [1, numbers].
WeightedMean mean_of_rows(const at::Tensor& values, const at::Tensor& counts) {
  const at::Tensor weights = counts.detach().to(values.scalar_type());
  const at::Tensor counted = at::where(weights != 0, values * weights, at::zeros_like(values));
  const at::Tensor weight = weights.sum(1);
  // The divisor of a mean over nothing is of no matter, unless it is 0.
  const at::Tensor divisor = at::where(weight == 0, at::full_like(weight, 1), weight);
  return {counted.sum(1) / divisor, weight};
}

}  // namespace

WeightedMean::WeightedMean(at::Tensor value, at::Tensor weight) : value_(std::move(value)) {
  if (!weight.defined()) return;
  late_ = [weight = weight.detach()] { return weight; };
}

at::Tensor WeightedMean::weight() const {
  if (late_) return late_();
  if (!known_) return {};
  return at::full_like(value_.detach(), *known_, value_.options().dtype(at::kDouble));
}

WeightedMean WeightedMean::mean() const {
  if (value_.dim() == 0) return *this;
  if (!has_weight()) return value_.mean();
  return weighted_mean(value_, weight());
}

WeightedMean weighted_mean(const at::Tensor& values, const at::Tensor& counts) {
  const WeightedMean mean = mean_of_rows(values.reshape({1, -1}),
                                         counts.expand(values.sizes()).reshape({1, -1}));
  return {mean.value().squeeze(0), mean.weight().squeeze(0)};
}

WeightedMean weighted_mean_of_examples(const at::Tensor& values, const at::Tensor& counts) {
  return mean_of_rows(values.flatten(1), counts.expand(values.sizes()).flatten(1));
}

}  // namespace stepop
