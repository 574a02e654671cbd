// The optimizers that a config names.
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/optim/optimizer.h"

namespace stepop {
namespace {

/// Stochastic gradient descent with momentum, as torch.optim.SGD.
class SGD : public Optimizer {
 public:
  struct Params : OptimizerParams {
    double momentum = 0;
    double dampening = 0;
    bool nesterov = false;

    void declare(Parameters& p) {
      p.add("momentum", momentum, "how much of the last change is kept", at_least(0));
      p.add("dampening", dampening, "how much less a gradient adds to the momentum");
      p.add("nesterov", nesterov, "looks ahead along the momentum");
    }
  };

  SGD(const Params& params, const Config& config, NamedParameters parameters)
      : Optimizer(config, std::move(parameters), traits(params)), p_(params) {
    if (p_.nesterov && (p_.momentum == 0 || p_.dampening != 0)) {
      throw config.error("nesterov", fmt::format("needs a momentum above 0 and a dampening of 0, "
                                                 "found a momentum of {} and a dampening of {}",
                                                 p_.momentum, p_.dampening));
    }
  }

 private:
  static Traits traits(const Params& params) {
    Traits traits = {
        .lr = params.lr, .weight_decay = params.weight_decay, .slots = {}, .is_repeatable = true};
    if (params.momentum > 0) {
      traits.slots = {"momentum_buffer"};
      traits.first_update_differs = true;
    }
    return traits;
  }

  /// Without dampening, the first momentum of a parameter is its gradient, so parameters that are
  /// updated for the first time need a separate call.
  void update(const Bucket& bucket, double lr, double weight_decay) override {
    if (bucket.slots.empty())
      return call(bucket, bucket.parameters, bucket.gradients, {}, lr, weight_decay, false);
    const auto fresh =
        static_cast<size_t>(std::count(bucket.is_first.begin(), bucket.is_first.end(), 1));
    if (fresh == 0 || fresh == bucket.is_first.size()) {
      return call(bucket, bucket.parameters, bucket.gradients, bucket.slots[0], lr, weight_decay,
                  fresh > 0);
    }
    for (const bool first : {true, false}) {
      std::vector<at::Tensor> parameters, gradients, momenta;
      for (size_t i = 0; i < bucket.parameters.size(); ++i) {
        if ((bucket.is_first[i] != 0) != first) continue;
        parameters.push_back(bucket.parameters[i]);
        gradients.push_back(bucket.gradients[i]);
        momenta.push_back(bucket.slots[0][i]);
      }
      call(bucket, parameters, gradients, momenta, lr, weight_decay, first);
    }
  }

  void call(const Bucket& bucket, at::TensorList parameters, at::TensorList gradients,
            at::TensorList momenta, double lr, double weight_decay, bool is_first_step) const {
    at::_fused_sgd_(parameters, gradients, momenta, weight_decay, p_.momentum, lr, p_.dampening,
                    p_.nesterov, /*maximize=*/false, is_first_step, /*grad_scale=*/{},
                    bucket.found_inf);
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(SGD, {"Stochastic gradient descent with momentum, as torch.optim.SGD."});

/// The common part of Adam and AdamW, which differ only in where the weight decay acts.
class AdamBase : public Optimizer {
 public:
  struct Params : AdamParams {
    bool amsgrad = false;

    void declare(Parameters& p) {
      AdamParams::declare(p);
      p.add("amsgrad", amsgrad, "divides by the largest average square so far (Reddi et al. 2018)");
    }
  };

 protected:
  AdamBase(const Params& params, const Config& config, NamedParameters parameters)
      : Optimizer(config, std::move(parameters), traits(params)), p_(params) {}

  at::TensorList max_exp_avg_sqs(const Bucket& bucket) const {
    return p_.amsgrad ? at::TensorList(bucket.slots[2]) : at::TensorList();
  }

  Params p_;

 private:
  static Traits traits(const Params& params) {
    Traits traits = {.lr = params.lr,
                     .weight_decay = params.weight_decay,
                     .slots = {"exp_avg", "exp_avg_sq"},
                     .is_repeatable = true};
    if (params.amsgrad) traits.slots.emplace_back("max_exp_avg_sq");
    return traits;
  }
};

/// Adam (Kingma and Ba 2015), as torch.optim.Adam: weight decay is added to the gradient.
class Adam : public AdamBase {
 public:
  using AdamBase::Params;
  Adam(const Params& params, const Config& config, NamedParameters parameters)
      : AdamBase(params, config, std::move(parameters)) {}

 private:
  void update(const Bucket& bucket, double lr, double weight_decay) override {
    at::_fused_adam_(bucket.parameters, bucket.gradients, bucket.slots[0], bucket.slots[1],
                     max_exp_avg_sqs(bucket), bucket.steps, lr, p_.betas[0], p_.betas[1],
                     weight_decay, p_.eps, p_.amsgrad, /*maximize=*/false, /*grad_scale=*/{},
                     bucket.found_inf);
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim.AdamW.
class AdamW : public AdamBase {
 public:
  struct Params : AdamBase::Params {
    Params() { weight_decay = 1e-2; }
  };

  AdamW(const Params& params, const Config& config, NamedParameters parameters)
      : AdamBase(params, config, std::move(parameters)) {}

 private:
  void update(const Bucket& bucket, double lr, double weight_decay) override {
    at::_fused_adamw_(bucket.parameters, bucket.gradients, bucket.slots[0], bucket.slots[1],
                      max_exp_avg_sqs(bucket), bucket.steps, lr, p_.betas[0], p_.betas[1],
                      weight_decay, p_.eps, p_.amsgrad, /*maximize=*/false, /*grad_scale=*/{},
                      bucket.found_inf);
  }
};

STEPOP_REGISTER_OPTIMIZER(Adam, {"Adam (Kingma and Ba 2015), as torch.optim.Adam."});

STEPOP_REGISTER_OPTIMIZER(AdamW,
                          {"Adam with decoupled weight decay (Loshchilov and Hutter 2019), as "
                           "torch.optim.AdamW."});

}  // namespace
}  // namespace stepop
