// Optimizers without fused LibTorch kernels on every device: each line of the formula is one call
// for many parameters.
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sign.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/optim/foreach_optimizer.h"

namespace stepop {
namespace {

class Adagrad : public ForeachOptimizer {
 public:
  struct Params : OptimizerParams {
    double lr_decay = 0;
    double eps = 1e-10;

    Params() { lr = 1e-2; }
    void declare(Parameters& p) {
      p.add("lr_decay", lr_decay, "lr is divided by 1 + updates * lr_decay", at_least(0));
      p.add("eps", eps, "added to the root of the sum of squares", at_least(0));
    }
  };

  Adagrad(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters),
                         {.lr = params.lr, .weight_decay = params.weight_decay, .slots = {"sum"}}),
        lr_decay_(params.lr_decay),
        eps_(params.eps) {}

 private:
  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const auto& sums = bucket.slots[0];
    if (bucket.steps.front().is_cpu()) {
      at::_fused_adagrad_(bucket.parameters, bucket.gradients, sums, bucket.steps, lr, lr_decay_,
                          weight_decay, eps_, /*maximize=*/false);
      return;
    }
    const Tensors gradients = decayed(bucket, weight_decay);
    at::_foreach_addcmul_(sums, gradients, gradients);
    Tensors roots = at::_foreach_sqrt(sums);
    at::_foreach_add_(roots, eps_);
    if (lr_decay_ > 0) {  // lr / (1 + (step - 1) * lr_decay)
      Tensors slower = at::_foreach_add(bucket.steps, -1);
      at::_foreach_mul_(slower, lr_decay_);
      at::_foreach_add_(slower, 1);
      at::_foreach_mul_(roots, slower);
    }
    at::_foreach_addcdiv_(bucket.parameters, gradients, roots, -lr);
  }

  double lr_decay_;
  double eps_;
};

STEPOP_REGISTER_OPTIMIZER(Adagrad, {"Adagrad (Duchi et al. 2011), as torch.optim.Adagrad."});

class RMSprop : public ForeachOptimizer {
 public:
  struct Params : OptimizerParams {
    double alpha = 0.99;
    double eps = 1e-8;
    double momentum = 0;
    bool centered = false;

    Params() { lr = 1e-2; }
    void declare(Parameters& p) {
      p.add("alpha", alpha, "decay of the average of squares", at_least(0).at_most(1));
      p.add("eps", eps, "added to the root of the average square", at_least(0));
      p.add("momentum", momentum, "how much of the last change is kept", at_least(0));
      p.add("centered", centered, "divides by the standard deviation");
    }
  };

  RMSprop(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters), traits(params)), p_(params) {}

 private:
  static Traits traits(const Params& params) {
    Traits traits = {.lr = params.lr, .weight_decay = params.weight_decay, .slots = {"square_avg"}};
    if (params.momentum > 0) traits.slots.emplace_back("momentum_buffer");
    if (params.centered) traits.slots.emplace_back("grad_avg");
    return traits;
  }

  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const Tensors gradients = decayed(bucket, weight_decay);
    const auto& squares = bucket.slots[0];
    at::_foreach_mul_(squares, p_.alpha);
    at::_foreach_addcmul_(squares, gradients, gradients, 1 - p_.alpha);
    Tensors roots;
    if (p_.centered) {
      const auto& means = bucket.slots.back();
      at::_foreach_lerp_(means, gradients, 1 - p_.alpha);
      Tensors variances = at::_foreach_addcmul(squares, means, means, -1);
      at::_foreach_sqrt_(variances);
      roots = std::move(variances);
    } else {
      roots = at::_foreach_sqrt(squares);
    }
    at::_foreach_add_(roots, p_.eps);
    if (p_.momentum == 0) return at::_foreach_addcdiv_(bucket.parameters, gradients, roots, -lr);
    const auto& momenta = bucket.slots[1];
    at::_foreach_mul_(momenta, p_.momentum);
    at::_foreach_addcdiv_(momenta, gradients, roots);
    at::_foreach_add_(bucket.parameters, momenta, -lr);
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(RMSprop, {"RMSprop (Hinton 2012), as torch.optim.RMSprop."});

/// Zeiler 2012.
class Adadelta : public ForeachOptimizer {
 public:
  struct Params : OptimizerParams {
    double rho = 0.9;
    double eps = 1e-6;

    Params() { lr = 1; }
    void declare(Parameters& p) {
      p.add("rho", rho, "decay of both averages of squares", at_least(0).at_most(1));
      p.add("eps", eps, "added to both before their roots", at_least(0));
    }
  };

  Adadelta(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters),
                         {.lr = params.lr,
                          .weight_decay = params.weight_decay,
                          .slots = {"square_avg", "acc_delta"}}),
        rho_(params.rho),
        eps_(params.eps) {}

 private:
  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const Tensors gradients = decayed(bucket, weight_decay);
    at::_foreach_mul_(bucket.slots[0], rho_);
    at::_foreach_addcmul_(bucket.slots[0], gradients, gradients, 1 - rho_);
    Tensors changes = at::_foreach_add(bucket.slots[1], eps_);
    at::_foreach_sqrt_(changes);
    Tensors roots = at::_foreach_add(bucket.slots[0], eps_);
    at::_foreach_sqrt_(roots);
    at::_foreach_div_(changes, roots);
    at::_foreach_mul_(changes, gradients);
    at::_foreach_mul_(bucket.slots[1], rho_);
    at::_foreach_addcmul_(bucket.slots[1], changes, changes, 1 - rho_);
    at::_foreach_add_(bucket.parameters, changes, -lr);
  }

  double rho_;
  double eps_;
};

STEPOP_REGISTER_OPTIMIZER(Adadelta, {"Adadelta (Zeiler 2012), as torch.optim.Adadelta."});

/// Chen et al. 2023, algorithm 2.
class Lion : public ForeachOptimizer {
 public:
  struct Params : OptimizerParams {
    std::array<double, 2> betas = {0.9, 0.99};

    Params() { lr = 1e-4; }
    void declare(Parameters& p) {
      p.add("betas", betas, "decay of the average, for the sign and for what is kept",
            at_least(0).below(1));
    }
  };

  Lion(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(
            config, std::move(parameters),
            {.lr = params.lr, .weight_decay = params.weight_decay, .slots = {"exp_avg"}}),
        betas_(params.betas) {}

 private:
  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const auto& averages = bucket.slots[0];
    Tensors signs = at::_foreach_lerp(averages, bucket.gradients, 1 - betas_[0]);
    at::_foreach_sign_(signs);
    if (weight_decay != 0) at::_foreach_mul_(bucket.parameters, 1 - lr * weight_decay);
    at::_foreach_add_(bucket.parameters, signs, -lr);
    at::_foreach_lerp_(averages, bucket.gradients, 1 - betas_[1]);
  }

  std::array<double, 2> betas_;
};

STEPOP_REGISTER_OPTIMIZER(
    Lion, {"Lion (Chen et al. 2023): the sign of a momentum, with decoupled weight decay."});

/// Polyak and Juditsky 1992.
class ASGD : public ForeachOptimizer {
 public:
  struct Params : OptimizerParams {
    double lambd = 1e-4;
    double alpha = 0.75;
    double t0 = 1e6;

    Params() { lr = 1e-2; }
    void declare(Parameters& p) {
      p.add("lambd", lambd, "how fast the rate falls, and a decay of the weights", at_least(0));
      p.add("alpha", alpha, "the power of the rate's fall", at_least(0));
      p.add("t0", t0, "updates before ax, in the checkpoint, becomes an average", at_least(0));
    }
  };

  ASGD(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters),
                         {.lr = params.lr,
                          .weight_decay = params.weight_decay,
                          .slots = {"ax", "eta"},
                          .first_update_differs = true}),
        p_(params) {}

 private:
  at::Tensor make_slot(const Bucket& bucket, size_t slot, size_t i) const override {
    if (slot == 0) return ForeachOptimizer::make_slot(bucket, slot, i);
    return at::zeros({}, at::kDouble);
  }

  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const Tensors gradients = decayed(bucket, weight_decay);
    for (size_t i = 0; i < gradients.size(); ++i) {
      const at::Tensor& parameter = bucket.parameters[i];
      double& eta = *bucket.slots[1][i].mutable_data_ptr<double>();
      if (bucket.is_first[i] != 0) eta = lr;
      parameter.mul_(1 - p_.lambd * eta).add_(gradients[i], -eta);
      const auto step = bucket.steps[i].item<double>();
      const double share = 1 / std::max(1.0, step - 1 - p_.t0);
      bucket.slots[0][i].lerp_(parameter, share);
      eta = lr / std::pow(1 + p_.lambd * lr * step, p_.alpha);
    }
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(ASGD,
                          {"SGD with a falling rate and an average of the weights (Polyak and "
                           "Juditsky 1992), as torch.optim.ASGD."});

/// Riedmiller and Braun 1993.
class Rprop : public ForeachOptimizer {
 public:
  struct Params : OptimizerParams {
    std::array<double, 2> etas = {0.5, 1.2};
    std::array<double, 2> step_sizes = {1e-6, 50};

    Params() { lr = 1e-2; }
    void declare(Parameters& p) {
      p.add("etas", etas, "factors of a weight's step where its gradient's sign changes, and not",
            above(0));
      p.add("step_sizes", step_sizes, "the smallest and the largest step; the first is lr",
            at_least(0));
    }
  };

  Rprop(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(
            config, std::move(parameters),
            {.lr = params.lr, .slots = {"prev", "step_size"}, .first_update_differs = true}),
        p_(params) {
    refuse_weight_decay(config, "Rprop");
    if (p_.etas[0] >= 1 || p_.etas[1] <= 1) {
      throw config.error("etas", "expected one below 1 and one above");
    }
  }

 private:
  void change(const Bucket& bucket, double lr, double /*weight_decay*/) override {
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      const at::Tensor& before = bucket.slots[0][i];
      const at::Tensor& size = bucket.slots[1][i];
      if (bucket.is_first[i] != 0) size.fill_(lr);
      const at::Tensor turn = bucket.gradients[i].mul(before);
      const at::Tensor has_turned = turn.lt(0);
      size.mul_(at::where(has_turned, p_.etas[0], 1.0))
          .mul_(at::where(turn.gt(0), p_.etas[1], 1.0))
          .clamp_(p_.step_sizes[0], p_.step_sizes[1]);
      before.copy_(bucket.gradients[i]).masked_fill_(has_turned, 0);
      bucket.parameters[i].addcmul_(before.sign(), size, -1);
    }
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(
    Rprop,
    {"Rprop (Riedmiller and Braun 1993): steps by the signs of gradients of a whole dataset, "
     "as torch.optim.Rprop."});

}  // namespace
}  // namespace stepop
