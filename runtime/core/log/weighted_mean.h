#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepop {

/// A mean, and its weight among other means: the number of labels, tokens or pixels that it is a
/// mean over.
///
///   const WeightedMean loss = cross_entropy(logits, batch["targets"]);
///   update_.step(loss);
///   return Logs{.scalars = {{"loss", loss}}};
///
/// Whatever takes means of means takes the weight along: the parts of a training step, the
/// processes, logs, evaluations. So their result is the mean over one large batch, whatever each
/// part leaves out. A mean over nothing has the value 0 and the weight 0, and changes no other
/// mean.
class WeightedMean {
 public:
  using LateWeight = std::function<at::Tensor()>;

  /// A mean over the examples of a batch: its weight is their number.
  WeightedMean(at::Tensor value) : value_(std::move(value)) {}

  /// `value` is [], or [B] with a mean for each example of a batch; `weight`, 0 or more, has its
  /// shape.
  WeightedMean(at::Tensor value, at::Tensor weight);
  /// The weight is known without waiting for a device.
  template <class T>
  requires std::is_arithmetic_v<T> WeightedMean(at::Tensor value, T weight)
      : value_(std::move(value)), known_(static_cast<double>(weight)) {}
  /// `weight` is called when something asks for the weight: most steps need none.
  WeightedMean(at::Tensor value, LateWeight weight)
      : value_(std::move(value)), late_(std::move(weight)) {}

  const at::Tensor& value() const { return value_; }
  /// False for a mean over examples.
  bool has_weight() const { return known_.has_value() || late_; }
  /// The weight where it is a number of the host.
  const std::optional<double>& known_weight() const { return known_; }
  /// In the shape of the value, on any device, without a gradient; undefined for a mean over
  /// examples.
  at::Tensor weight() const;

  /// The mean of all examples, [], of a mean for each of them.
  WeightedMean mean() const;

  /// `0.5 * loss + penalty`: a scaled mean, and one with a further term in its shape, have the same
  /// weight.
  friend WeightedMean operator*(const WeightedMean& mean, double factor) {
    return mean.times(factor);
  }
  friend WeightedMean operator*(double factor, const WeightedMean& mean) {
    return mean.times(factor);
  }
  friend WeightedMean operator+(const WeightedMean& mean, const at::Tensor& term) {
    return mean.plus(term);
  }
  friend WeightedMean operator+(const at::Tensor& term, const WeightedMean& mean) {
    return mean.plus(term);
  }

 private:
  WeightedMean times(double factor) const;
  WeightedMean plus(const at::Tensor& term) const;

  at::Tensor value_;
  std::optional<double> known_;
  LateWeight late_;
};

/// The mean of two means, [] each, that both have weights.
WeightedMean mean_of(const WeightedMean& a, const WeightedMean& b);

/// The mean over the values that count: `counts` is a mask, or the weight of each value, 0 or more,
/// in a shape that expands to that of `values`. What does not count may be NaN. [].
WeightedMean weighted_mean(const at::Tensor& values, const at::Tensor& counts);
/// The same for each example of a batch: [B].
WeightedMean weighted_mean_of_examples(const at::Tensor& values, const at::Tensor& counts);

}  // namespace stepop
