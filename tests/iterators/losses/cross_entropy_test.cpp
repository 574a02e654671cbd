// Cross entropy with its weight, against its definition in double precision.

#include "iterators/losses/cross_entropy.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace stepop {
namespace cross_entropy_test {

constexpr int64_t kClasses = 3;

/// [B, 3, 2], and a target of each of its positions.
const at::Tensor kLogits = at::arange(24, at::kDouble).sin().mul(2).view({4, kClasses, 2});
const std::vector<int64_t> kTargets = {0, 2, -100, -100, 1, -100, 2, 2};

struct Sums {
  double loss = 0;
  double weight = 0;
};

/// The sums of one example, position by position: (1 - s) x the negative log likelihood of the
/// target x its class's weight + s / C x the sum over the classes.
Sums sums_of(int64_t example, int64_t ignore, double smoothing, const std::vector<double>& weights,
             const std::vector<int64_t>& targets) {
  const at::Tensor likelihood = at::log_softmax(kLogits, 1).contiguous();
  const auto* values = likelihood.const_data_ptr<double>() + example * kClasses * 2;
  Sums sums;
  for (int64_t place = 0; place < 2; ++place) {
    const int64_t target = targets[static_cast<size_t>(example * 2 + place)];
    if (target == ignore) continue;
    const double weight = weights[static_cast<size_t>(target)];
    sums.weight += weight;
    sums.loss -= (1 - smoothing) * weight * values[target * 2 + place];
    for (int64_t c = 0; c < kClasses; ++c) {
      sums.loss -= smoothing / kClasses * weights[static_cast<size_t>(c)] * values[c * 2 + place];
    }
  }
  return sums;
}

TEST_CASE("values and weights are PyTorch's definition, for each option") {
  for (const int64_t ignore : {-100, 255, 1}) {
    for (const double smoothing : {0.0, 0.2}) {
      for (const bool weighs : {false, true}) {
        CAPTURE(ignore);
        CAPTURE(smoothing);
        CAPTURE(weighs);
        std::vector<int64_t> targets = kTargets;
        if (ignore != 1) {
          for (auto& target : targets) target = target == -100 ? ignore : target;
        } else {
          for (auto& target : targets) target = target == -100 ? 1 : target;
        }
        const std::vector<double> weights =
            weighs ? std::vector<double>{0.5, 2, 3} : std::vector<double>{1, 1, 1};
        CrossEntropyOptions options{.ignore = ignore, .label_smoothing = smoothing};
        if (weighs) options.class_weights = at::tensor(weights, at::kDouble);
        const at::Tensor target = at::tensor(targets).view({4, 2});
        Sums all;
        std::vector<double> values;
        std::vector<double> of_examples;
        for (int64_t i = 0; i < 4; ++i) {
          const Sums sums = sums_of(i, ignore, smoothing, weights, targets);
          all.loss += sums.loss;
          all.weight += sums.weight;
          values.push_back(sums.weight == 0 ? 0 : sums.loss / sums.weight);
          of_examples.push_back(sums.weight);
        }
        const WeightedMean mean = cross_entropy(kLogits, target, options);
        CHECK(mean.value().item<double>() == doctest::Approx(all.loss / all.weight));
        CHECK(mean.weight().item<double>() == doctest::Approx(all.weight));
        const WeightedMean each = cross_entropy_of_examples(kLogits, target, options);
        CHECK(at::allclose(each.value(), at::tensor(values, at::kDouble)));
        CHECK(at::allclose(each.weight(), at::tensor(of_examples, at::kDouble)));
        CHECK(each.mean().value().item<double>() == doctest::Approx(all.loss / all.weight));
        // Not contiguous: the weight is computed when something asks for it.
        const WeightedMean late = cross_entropy(kLogits, target.t().contiguous().t(), options);
        CHECK_FALSE(late.known_weight());
        CHECK(late.weight().item<double>() == doctest::Approx(all.weight));
      }
    }
  }
}

TEST_CASE("of targets that are all left out value, weight and gradient are 0") {
  at::Tensor logits = kLogits.clone();
  logits[0][0][0] = std::numeric_limits<double>::infinity();
  logits.requires_grad_();
  const at::Tensor targets = at::full({4, 2}, -100, at::kLong);
  const WeightedMean mean = cross_entropy(logits, targets);
  CHECK(mean.value().item<double>() == 0);
  CHECK(mean.known_weight() == 0);
  mean.value().backward();
  CHECK(at::allclose(logits.grad(), at::zeros({4, 3, 2}, at::kDouble)));
  const WeightedMean each = cross_entropy_of_examples(kLogits, targets);
  CHECK(at::allclose(each.value(), at::zeros({4}, at::kDouble)));
  CHECK(at::allclose(each.weight(), at::zeros({4}, at::kDouble)));
}

TEST_CASE("soft labels count 1 each") {
  const at::Tensor soft = kLogits.softmax(1);
  const WeightedMean mean = cross_entropy(kLogits, soft);
  CHECK(mean.known_weight() == 8);
  const at::Tensor entropy = -(soft * at::log_softmax(kLogits, 1)).sum(1);  // [4, 2]
  CHECK(mean.value().item<double>() == doctest::Approx(entropy.mean().item<double>()));
  const WeightedMean each = cross_entropy_of_examples(kLogits, soft);
  CHECK(at::allclose(each.value(), entropy.mean(1)));
  CHECK(at::allclose(each.weight(), at::full({4}, 2., at::kDouble)));
  // One label for each image.
  const WeightedMean labels =
      cross_entropy_of_examples(kLogits.select(2, 0), at::tensor({0, -100, 1, 2}, at::kLong));
  CHECK(at::allclose(labels.weight(), at::tensor({1., 0., 1., 1.}, at::kDouble)));
}

}  // namespace cross_entropy_test
}  // namespace stepop
