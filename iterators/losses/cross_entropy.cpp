#include "iterators/losses/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

namespace stepop {
namespace {

bool are_probabilities(const at::Tensor& logits, const at::Tensor& targets) {
  return targets.is_floating_point() && targets.sizes() == logits.sizes();
}

/// The number of targets that count, where the host has them at hand.
std::optional<int64_t> count_at_hand(const at::Tensor& targets, int64_t ignore) {
  if (!targets.is_cpu() || targets.scalar_type() != at::kLong || !targets.is_contiguous()) {
    return std::nullopt;
  }
  const auto* values = targets.const_data_ptr<int64_t>();
  return targets.numel() - std::count(values, values + targets.numel(), ignore);
}

/// How much each target counts, [B, ...].
at::Tensor weights_of(const at::Tensor& targets, const CrossEntropyOptions& options) {
  const at::Tensor counts = targets != options.ignore;
  if (!options.class_weights.defined()) return counts.to(at::kFloat);
  const at::Tensor& weights = options.class_weights;
  const at::Tensor of_targets = weights.take(at::where(counts, targets, 0).to(at::kLong));
  return at::where(counts, of_targets, at::zeros({}, weights.options()));
}

at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& targets,
                   const CrossEntropyOptions& options, at::Reduction::Reduction reduction) {
  return at::cross_entropy_loss(logits, targets, options.class_weights, reduction, options.ignore,
                                options.label_smoothing);
}

/// [B, ...] -> [B].
at::Tensor sum_of_examples(const at::Tensor& values) {
  return values.dim() == 1 ? values : values.flatten(1).sum(1);
}

/// A 0 that depends on the logits: its gradient is 0 even where they are infinite.
at::Tensor nothing_of(const at::Tensor& logits) { return logits.slice(0, 0, 0).sum(); }

}  // namespace

WeightedMean cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                           const CrossEntropyOptions& options) {
  if (are_probabilities(logits, targets)) {
    const auto labels = targets.numel() / std::max<int64_t>(1, logits.size(1));
    if (labels == 0) return {nothing_of(logits), 0};
    return {loss_of(logits, targets, options, at::Reduction::Mean), labels};
  }
  std::optional<double> known;
  if (const auto count = count_at_hand(targets, options.ignore)) {
    known = static_cast<double>(*count);
    if (*known > 0 && options.class_weights.defined()) {
      known = weights_of(targets, options).sum().item<double>();
    }
    if (*known == 0) return {nothing_of(logits), 0};
  }
  at::Tensor value = loss_of(logits, targets, options, at::Reduction::Mean);
  if (known) return {std::move(value), *known};
  return {std::move(value), [=] { return weights_of(targets, options).sum(); }};
}

WeightedMean cross_entropy_of_examples(const at::Tensor& logits, const at::Tensor& targets,
                                       const CrossEntropyOptions& options) {
  const at::Tensor losses = loss_of(logits, targets, options, at::Reduction::None);  // [B, ...]
  const at::Tensor weights = are_probabilities(logits, targets)
                                 ? at::ones(losses.sizes(), losses.options())
                                 : weights_of(targets, options);
  // The losses of PyTorch have the weights of their classes already.
  const at::Tensor weight = sum_of_examples(weights).to(losses.options());
  const at::Tensor divisor = at::where(weight == 0, at::ones({}, weight.options()), weight);
  return {sum_of_examples(losses) / divisor, weight};
}

}  // namespace stepop
