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

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/optim/foreach_optimizer.h"

namespace stepop {
namespace {

class Adagrad : public ForeachOptimizer {
 public:
  Adagrad(const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters), {.lr = 1e-2, .slots = {"sum"}}),
        lr_decay_(read_non_negative(config, "lr_decay", 0)),
        eps_(read_non_negative(config, "eps", 1e-10)) {}

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

STEPOP_REGISTER_OPTIMIZER(
    Adagrad, {"Adagrad (Duchi et al. 2011), as torch.optim.Adagrad.",
              optimizer_parameters("1e-2", "0",
                                   {{"lr_decay", "0", "lr is divided by 1 + updates * lr_decay"},
                                    {"eps", "1e-10", "added to the root of the sum of squares"}})});

class RMSprop : public ForeachOptimizer {
 public:
  RMSprop(const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters), traits(config)),
        alpha_(config.get("alpha", 0.99)),
        eps_(read_non_negative(config, "eps", 1e-8)),
        momentum_(config.get("momentum", 0.0)),
        centered_(config.get("centered", false)) {}

 private:
  static Traits traits(const Config& config) {
    Traits traits = {.lr = 1e-2, .slots = {"square_avg"}};
    const double alpha = config.get("alpha", 0.99);
    if (alpha < 0 || alpha > 1) throw config.error("alpha", "expected a number from 0 to 1");
    if (read_non_negative(config, "momentum", 0) > 0) traits.slots.emplace_back("momentum_buffer");
    if (config.get("centered", false)) traits.slots.emplace_back("grad_avg");
    return traits;
  }

  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const Tensors gradients = decayed(bucket, weight_decay);
    const auto& squares = bucket.slots[0];
    at::_foreach_mul_(squares, alpha_);
    at::_foreach_addcmul_(squares, gradients, gradients, 1 - alpha_);
    Tensors roots;
    if (centered_) {
      const auto& means = bucket.slots.back();
      at::_foreach_lerp_(means, gradients, 1 - alpha_);
      Tensors variances = at::_foreach_addcmul(squares, means, means, -1);
      at::_foreach_sqrt_(variances);
      roots = std::move(variances);
    } else {
      roots = at::_foreach_sqrt(squares);
    }
    at::_foreach_add_(roots, eps_);
    if (momentum_ == 0) return at::_foreach_addcdiv_(bucket.parameters, gradients, roots, -lr);
    const auto& momenta = bucket.slots[1];
    at::_foreach_mul_(momenta, momentum_);
    at::_foreach_addcdiv_(momenta, gradients, roots);
    at::_foreach_add_(bucket.parameters, momenta, -lr);
  }

  double alpha_;
  double eps_;
  double momentum_;
  bool centered_;
};

STEPOP_REGISTER_OPTIMIZER(
    RMSprop, {"RMSprop (Hinton 2012), as torch.optim.RMSprop.",
              optimizer_parameters("1e-2", "0",
                                   {{"alpha", "0.99", "decay of the average of squares"},
                                    {"eps", "1e-8", "added to the root of the average square"},
                                    {"momentum", "0", "how much of the last change is kept"},
                                    {"centered", "false", "divides by the standard deviation"}})});

/// Zeiler 2012.
class Adadelta : public ForeachOptimizer {
 public:
  Adadelta(const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters),
                         {.lr = 1, .slots = {"square_avg", "acc_delta"}}),
        rho_(config.get("rho", 0.9)),
        eps_(read_non_negative(config, "eps", 1e-6)) {
    if (rho_ < 0 || rho_ > 1) throw config.error("rho", "expected a number from 0 to 1");
  }

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

STEPOP_REGISTER_OPTIMIZER(
    Adadelta, {"Adadelta (Zeiler 2012), as torch.optim.Adadelta.",
               optimizer_parameters("1", "0",
                                    {{"rho", "0.9", "decay of both averages of squares"},
                                     {"eps", "1e-6", "added to both before their roots"}})});

/// Chen et al. 2023, algorithm 2.
class Lion : public ForeachOptimizer {
 public:
  Lion(const Config& config, NamedParameters parameters)
      : ForeachOptimizer(config, std::move(parameters), {.lr = 1e-4, .slots = {"exp_avg"}}),
        betas_(read_betas(config, 0.9, 0.99)) {}

 private:
  void change(const Bucket& bucket, double lr, double weight_decay) override {
    const auto& averages = bucket.slots[0];
    Tensors signs = at::_foreach_lerp(averages, bucket.gradients, 1 - betas_.first);
    at::_foreach_sign_(signs);
    if (weight_decay != 0) at::_foreach_mul_(bucket.parameters, 1 - lr * weight_decay);
    at::_foreach_add_(bucket.parameters, signs, -lr);
    at::_foreach_lerp_(averages, bucket.gradients, 1 - betas_.second);
  }

  std::pair<double, double> betas_;
};

STEPOP_REGISTER_OPTIMIZER(
    Lion, {"Lion (Chen et al. 2023): the sign of a momentum, with decoupled weight decay.",
           optimizer_parameters("1e-4", "0",
                                {{"betas", "[0.9, 0.99]",
                                  "decay of the average, for the sign and for what is kept"}})});

}  // namespace
}  // namespace stepop
