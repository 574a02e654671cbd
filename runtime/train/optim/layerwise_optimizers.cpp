// Optimizers for large batches: the change of a tensor depends on the norm of its weights.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_pow.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "runtime/train/optim/foreach_optimizer.h"

namespace stepop {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// You et al. 2020, algorithm 2.
class LAMB : public ForeachOptimizer {
 public:
  struct Params : AdamParams {
    bool bias_correction = true;
    double max_weight_norm = kNoBound;

    Params() { eps = 1e-6; }
    void declare(Parameters& p) {
      AdamParams::declare(p);
      p.add("bias_correction", bias_correction,
            "averages of few gradients count in full, as in Adam");
      p.add("max_weight_norm", max_weight_norm, "the norm of weights counts as this at most",
            above(0));
      p.describe({"adapt",
                  "true",
                  "false, in one of groups: AdamW's change, whatever the norms",
                  false,
                  {.kind = "bool"}});
    }
  };

  LAMB(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters),
                         {.lr = params.lr,
                          .weight_decay = params.weight_decay,
                          .slots = {"exp_avg", "exp_avg_sq"},
                          .reads_adapt = true}),
        p_(params) {}

 private:
  /// 1 - beta ^ step, for every parameter.
  static Tensors bias_correction(const Bucket& bucket, double beta) {
    Tensors powers = at::_foreach_pow(at::Scalar(beta), bucket.steps);
    at::_foreach_mul_(powers, -1);
    at::_foreach_add_(powers, 1);
    return powers;
  }

  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const auto& averages = bucket.slots[0];
    const auto& squares = bucket.slots[1];
    if (!bucket.adapt.value_or(true)) {
      constexpr double kEps = 1e-8;  // AdamW's default
      return at::_fused_adamw_(bucket.parameters, bucket.gradients, averages, squares, {},
                               bucket.steps, lr, p_.betas[0], p_.betas[1], weight_decay, kEps,
                               /*amsgrad=*/false, /*maximize=*/false);
    }
    at::_foreach_lerp_(averages, bucket.gradients, 1 - p_.betas[0]);
    at::_foreach_mul_(squares, p_.betas[1]);
    at::_foreach_addcmul_(squares, bucket.gradients, bucket.gradients, 1 - p_.betas[1]);
    Tensors roots = p_.bias_correction
                        ? at::_foreach_div(squares, bias_correction(bucket, p_.betas[1]))
                        : at::_foreach_add(squares, 0);
    at::_foreach_sqrt_(roots);
    at::_foreach_add_(roots, p_.eps);
    Tensors changes = p_.bias_correction
                          ? at::_foreach_div(averages, bias_correction(bucket, p_.betas[0]))
                          : at::_foreach_add(averages, 0);
    at::_foreach_div_(changes, roots);
    if (weight_decay != 0) at::_foreach_add_(changes, bucket.parameters, weight_decay);
    const Tensors weight_norms = at::_foreach_norm(bucket.parameters);
    const Tensors change_norms = at::_foreach_norm(changes);
    Tensors trust;
    for (size_t i = 0; i < changes.size(); ++i) {
      const at::Tensor& weights = weight_norms[i];
      const at::Tensor is_zero = weights.eq(0).logical_or(change_norms[i].eq(0));
      const at::Tensor bounded =
          p_.max_weight_norm < kNoBound ? weights.clamp_max(p_.max_weight_norm) : weights;
      trust.push_back(at::where(is_zero, 1.0, bounded.div(change_norms[i])));
    }
    at::_foreach_mul_(changes, trust);
    at::_foreach_add_(bucket.parameters, changes, -lr);
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(
    LAMB, {"LAMB (You et al. 2020), for large batches: Adam's change, as long as the weights."});

/// LARS (You, Gitman and Ginsburg 2017), and LARC, whose rate never exceeds `lr`, as in NVIDIA's
/// apex: stochastic gradient descent with a rate for each tensor of weights, trust_coefficient *
/// |weights| / (|gradient| + weight_decay * |weights| + eps). Without `clip` it is multiplied by
/// `lr`; with `clip` it is at most `lr`.
class LARS : public ForeachOptimizer {
 public:
  struct Params : OptimizerParams {
    double momentum = 0.9;
    double trust_coefficient = 0.02;
    double eps = 1e-8;
    bool clip = true;

    Params() { lr = 0.1; }
    void declare(Parameters& p) {
      p.add("momentum", momentum, "how much of the last change is kept", at_least(0));
      p.add("trust_coefficient", trust_coefficient, "of the norm of weights, for one change",
            above(0));
      p.add("eps", eps, "added to the norm of the gradient", at_least(0));
      p.add("clip", clip, "true, as LARC: the rate is lr at most; false: it is multiplied by lr");
      p.describe({"adapt",
                  "for 2 or more dimensions",
                  "in one of groups: true or false. What is not adapted, such as biases and norms, "
                  "has neither momentum nor decay",
                  false,
                  {.kind = "bool"}});
    }
  };

  LARS(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters), traits(params)), p_(params) {}

 private:
  static Traits traits(const Params& params) {
    Traits traits = {
        .lr = params.lr, .weight_decay = params.weight_decay, .slots = {}, .reads_adapt = true};
    if (params.momentum > 0) traits.slots = {"momentum_buffer"};
    return traits;
  }

  /// The factor for the gradient and the decay, []; `weights` and `gradient` are norms, [].
  at::Tensor rate(const at::Tensor& weights, const at::Tensor& gradient, double lr,
                  double weight_decay) const {
    at::Tensor rate =
        weights.mul(p_.trust_coefficient).div(gradient.add(weights, weight_decay).add(p_.eps));
    if (p_.clip) rate = rate.div(lr).clamp_max(1);
    return at::where(weights.eq(0), 1.0, at::where(gradient.eq(0), 0.0, rate));
  }

  void change(const Bucket& bucket, double lr, double weight_decay) override {
    Tensors plain, plain_gradients, adapted, gradients, momenta;
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      const at::Tensor& parameter = bucket.parameters[i];
      if (!bucket.adapt.value_or(parameter.dim() > 1)) {
        plain.push_back(parameter);
        plain_gradients.push_back(bucket.gradients[i]);
        continue;
      }
      adapted.push_back(parameter);
      gradients.push_back(bucket.gradients[i]);
      if (p_.momentum > 0) momenta.push_back(bucket.slots[0][i]);
    }
    if (!plain.empty()) at::_foreach_add_(plain, plain_gradients, -lr);
    if (adapted.empty()) return;
    const Tensors weight_norms = at::_foreach_norm(adapted);
    const Tensors gradient_norms = at::_foreach_norm(gradients);
    Tensors rates;
    for (size_t i = 0; i < adapted.size(); ++i) {
      rates.push_back(rate(weight_norms[i], gradient_norms[i], lr, weight_decay));
    }
    Tensors changes = at::_foreach_add(gradients, adapted, weight_decay);
    at::_foreach_mul_(changes, rates);
    if (p_.momentum > 0) {
      at::_foreach_mul_(momenta, p_.momentum);
      at::_foreach_add_(momenta, changes);
      changes = std::move(momenta);
    }
    at::_foreach_add_(adapted, changes, -lr);
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(
    LARS, {"LARS (You et al. 2017), for large batches: each tensor's rate follows the norm of its "
           "weights."});

}  // namespace
}  // namespace stepop
