#include "runtime/core/log/weighted_mean.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/core/base/error.h"

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

/// The value times the weight, float64 []; 0 where the weight is.
at::Tensor weighted_value(const WeightedMean& mean, const at::Tensor& weight) {
  const at::Tensor value = mean.value().detach().reshape({}).to(at::kDouble);
  return value.mul(weight.to(value.device())).masked_fill(weight.to(value.device()).eq(0), 0);
}

at::Tensor weight_of(const WeightedMean& mean) {
  return mean.weight().detach().reshape({}).to(at::kDouble);
}

}  // namespace

WeightedMean::WeightedMean(at::Tensor value, at::Tensor weight) : value_(std::move(value)) {
  if (!weight.defined()) return;
  late_ = [weight = weight.detach()] { return weight; };
}

at::Tensor WeightedMean::weight() const {
  if (late_) {
    at::Tensor weight = late_();
    if (weight.numel() == value_.numel() || weight.numel() == 1) return weight;
    throw Error(
        fmt::format("a mean of the shape [{}] has a weight of the shape [{}]; a weight is "
                    "one number, or has the shape of the mean",
                    fmt::join(value_.sizes(), ", "), fmt::join(weight.sizes(), ", ")));
  }
  if (!known_) return {};
  return at::full_like(value_.detach(), *known_, value_.options().dtype(at::kDouble));
}

WeightedMean WeightedMean::times(double factor) const {
  WeightedMean scaled = *this;
  scaled.value_ = value_ * factor;
  return scaled;
}

WeightedMean WeightedMean::plus(const at::Tensor& term) const {
  WeightedMean sum = *this;
  sum.value_ = value_ + term;
  return sum;
}

WeightedMean WeightedMean::mean() const {
  if (value_.dim() == 0) return *this;
  if (!has_weight()) return value_.mean();
  return weighted_mean(value_, weight());
}

WeightedMean mean_of(const WeightedMean& a, const WeightedMean& b) {
  const at::Tensor weight_a = weight_of(a);
  const at::Tensor weight_b = weight_of(b).to(weight_a.device());
  const at::Tensor weight = weight_a.add(weight_b);
  const at::Tensor sum =
      weighted_value(a, weight_a).add(weighted_value(b, weight_b).to(a.value().device()));
  const at::Tensor here = weight.to(sum.device());
  return {sum.div(here.masked_fill(here.eq(0), 1)), weight};
}

WeightedMean weighted_mean(const at::Tensor& values, const at::Tensor& counts) {
  const WeightedMean mean =
      mean_of_rows(values.reshape({1, -1}), counts.expand(values.sizes()).reshape({1, -1}));
  return {mean.value().squeeze(0), mean.weight().squeeze(0)};
}

WeightedMean weighted_mean_of_examples(const at::Tensor& values, const at::Tensor& counts) {
  const at::Tensor rows = values.dim() == 1 ? values.unsqueeze(1) : values.flatten(1);
  const at::Tensor of_rows = counts.expand(values.sizes());
  return mean_of_rows(rows, of_rows.dim() == 1 ? of_rows.unsqueeze(1) : of_rows.flatten(1));
}

}  // namespace stepop
