// Kin of Adam as torch.optim has them. What depends on a parameter's count of updates is computed
// in float64 for all parameters at once, on their device.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_abs.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_maximum.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_reciprocal.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/train/optim/foreach_optimizer.h"

namespace stepop {
namespace {

/// What they have in common: averages of gradients and of their squares.
class AdamVariant : public ForeachOptimizer {
 public:
  struct Params : AdamParams {
    bool decoupled_weight_decay = false;

    void declare(Parameters& p) {
      AdamParams::declare(p);
      p.add("decoupled_weight_decay", decoupled_weight_decay, "weight decay as in AdamW");
    }
  };

 protected:
  AdamVariant(const Params& params, const Config& config, NamedParameters parameters,
              std::vector<std::string> slots)
      : ForeachOptimizer(
            config, std::move(parameters),
            {.lr = params.lr, .weight_decay = params.weight_decay, .slots = std::move(slots)}),
        p_(params) {}

  /// The counts of updates, float64 [parameters].
  static at::Tensor counts(const Bucket& bucket) { return at::stack(bucket.steps).to(at::kDouble); }

  /// Both averages with the gradients, which have the weight decay in them unless it is decoupled.
  Tensors average(const Bucket& bucket, double lr, double weight_decay) const {
    const bool is_decoupled = p_.decoupled_weight_decay;
    if (is_decoupled && weight_decay != 0) {
      at::_foreach_mul_(bucket.parameters, 1 - lr * weight_decay);
    }
    Tensors gradients = decayed(bucket, is_decoupled ? 0 : weight_decay);
    at::_foreach_lerp_(bucket.slots[0], gradients, 1 - p_.betas[0]);
    at::_foreach_mul_(bucket.slots[1], p_.betas[1]);
    at::_foreach_addcmul_(bucket.slots[1], gradients, gradients, 1 - p_.betas[1]);
    return gradients;
  }

  Params p_;
};

/// Dozat 2016.
class NAdam : public AdamVariant {
 public:
  struct Params : AdamVariant::Params {
    double momentum_decay = 4e-3;

    Params() { lr = 2e-3; }
    void declare(Parameters& p) {
      AdamVariant::Params::declare(p);
      p.add("momentum_decay", momentum_decay, "how fast the momentum grows to beta1", at_least(0));
    }
  };

  NAdam(const Params& params, const Config& config, NamedParameters parameters)
      : AdamVariant(params, config, std::move(parameters), {"exp_avg", "exp_avg_sq", "mu_product"}),
        momentum_decay_(params.momentum_decay) {}

 private:
  at::Tensor make_slot(const Bucket& bucket, size_t slot, size_t i) const override {
    return slot == 2 ? at::zeros_like(bucket.steps[i]) : Optimizer::make_slot(bucket, slot, i);
  }

  at::Tensor momentum(const at::Tensor& counts) const {
    return p_.betas[0] * (1 - 0.5 * at::pow(0.96, counts * momentum_decay_));
  }

  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const Tensors gradients = average(bucket, lr, weight_decay);
    const at::Tensor steps = counts(bucket);
    const at::Tensor now = momentum(steps);
    const at::Tensor next = momentum(steps + 1);
    // The product of all momenta; the first update takes what is stored for 1.
    const at::Tensor before = at::stack(bucket.slots[2]).to(at::kDouble);
    const at::Tensor product =
        at::where(steps.eq(1), now, before * now).to(at::kFloat).to(at::kDouble);
    at::_foreach_copy_(bucket.slots[2], product.unbind());
    Tensors roots = at::_foreach_div(bucket.slots[1], (1 - at::pow(p_.betas[1], steps)).unbind());
    at::_foreach_sqrt_(roots);
    at::_foreach_add_(roots, p_.eps);
    const at::Tensor of_gradient = -lr * (1 - now) / (1 - product);
    const at::Tensor of_average = -lr * next / (1 - product * next);
    at::_foreach_addcdiv_(bucket.parameters, at::_foreach_mul(gradients, of_gradient.unbind()),
                          roots);
    at::_foreach_addcdiv_(bucket.parameters, at::_foreach_mul(bucket.slots[0], of_average.unbind()),
                          roots);
  }

  double momentum_decay_;
};

STEPOP_REGISTER_OPTIMIZER(NAdam,
                          {"Adam with Nesterov's momentum (Dozat 2016), as torch.optim.NAdam."});

/// Liu et al. 2020.
class RAdam : public AdamVariant {
 public:
  using AdamVariant::Params;
  RAdam(const Params& params, const Config& config, NamedParameters parameters)
      : AdamVariant(params, config, std::move(parameters), {"exp_avg", "exp_avg_sq"}) {}

 private:
  void change(const Bucket& bucket, double lr, double weight_decay) override {
    average(bucket, lr, weight_decay);
    const at::Tensor steps = counts(bucket);
    const at::Tensor power = at::pow(p_.betas[1], steps);
    const double last = 2 / (1 - p_.betas[1]) - 1;
    const at::Tensor length = last - 2 * steps * power / (1 - power);
    const at::Tensor rectified =
        ((length - 4) * (length - 2) * last / ((last - 4) * (last - 2) * length) * (1 - power))
            .sqrt();
    const at::Tensor is_long = length.gt(5);  // else the average square says too little
    Tensors factors = at::_foreach_sqrt(bucket.slots[1]);
    at::_foreach_add_(factors, p_.eps);
    at::_foreach_reciprocal_(factors);
    at::_foreach_mul_(factors, at::where(is_long, rectified, 0.0).unbind());
    at::_foreach_add_(factors, at::where(is_long, 0.0, 1.0).to(at::kDouble).unbind());
    at::_foreach_mul_(factors, bucket.slots[0]);
    at::_foreach_div_(factors, (1 - at::pow(p_.betas[0], steps)).unbind());
    at::_foreach_add_(bucket.parameters, factors, -lr);
  }
};

STEPOP_REGISTER_OPTIMIZER(
    RAdam, {"Adam with a rate that the first updates hold back (Liu et al. 2020), as "
            "torch.optim.RAdam."});

/// Kingma and Ba 2015, algorithm 2.
class Adamax : public AdamVariant {
 public:
  struct Params : AdamVariant::Params {
    Params() { lr = 2e-3; }
    void declare(Parameters& p) {
      p.add("betas", betas, "decay of the average and of the largest", at_least(0).below(1));
      p.add("eps", eps, "added to the size of a gradient", at_least(0));
    }
  };

  Adamax(const Params& params, const Config& config, NamedParameters parameters)
      : AdamVariant(params, config, std::move(parameters), {"exp_avg", "exp_inf"}) {}

 private:
  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const Tensors gradients = decayed(bucket, weight_decay);
    at::_foreach_lerp_(bucket.slots[0], gradients, 1 - p_.betas[0]);
    Tensors sizes = at::_foreach_abs(gradients);
    at::_foreach_add_(sizes, p_.eps);
    at::_foreach_mul_(bucket.slots[1], p_.betas[1]);
    at::_foreach_maximum_(bucket.slots[1], sizes);
    const at::Tensor factors = -lr / (1 - at::pow(p_.betas[0], counts(bucket)));
    at::_foreach_addcdiv_(bucket.parameters, at::_foreach_mul(bucket.slots[0], factors.unbind()),
                          bucket.slots[1]);
  }
};

STEPOP_REGISTER_OPTIMIZER(
    Adamax, {"Adam with the largest gradient in the place of the root (Kingma and Ba 2015), as "
             "torch.optim.Adamax."});

}  // namespace
}  // namespace stepop
