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
  SGD(const Config& config, NamedParameters parameters)
      : Optimizer(config, std::move(parameters), traits(config)),
        momentum_(config.get("momentum", 0.0)),
        dampening_(config.get("dampening", 0.0)),
        nesterov_(config.get("nesterov", false)) {
    if (nesterov_ && (momentum_ == 0 || dampening_ != 0)) {
      throw config.error("nesterov", fmt::format("needs a momentum above 0 and a dampening of 0, "
                                                 "found a momentum of {} and a dampening of {}",
                                                 momentum_, dampening_));
    }
  }

 private:
  static Traits traits(const Config& config) {
    Traits traits;
    if (read_non_negative(config, "momentum", 0) > 0) {
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
    at::_fused_sgd_(parameters, gradients, momenta, weight_decay, momentum_, lr, dampening_,
                    nesterov_, /*maximize=*/false, is_first_step, /*grad_scale=*/{},
                    bucket.found_inf);
  }

  double momentum_;
  double dampening_;
  bool nesterov_;
};

STEPOP_REGISTER_OPTIMIZER(
    SGD, {"Stochastic gradient descent with momentum, as torch.optim.SGD.",
          optimizer_parameters("1e-3", "0",
                               {{"momentum", "0", "how much of the last change is kept"},
                                {"dampening", "0", "how much less a gradient adds to the momentum"},
                                {"nesterov", "false", "looks ahead along the momentum"}})});

/// The common part of Adam and AdamW, which differ only in where the weight decay acts.
class AdamBase : public Optimizer {
 protected:
  AdamBase(const Config& config, NamedParameters parameters, double default_weight_decay)
      : Optimizer(config, std::move(parameters), traits(config, default_weight_decay)),
        betas_(read_betas(config, 0.9, 0.999)),
        eps_(read_non_negative(config, "eps", 1e-8)),
        amsgrad_(config.get("amsgrad", false)) {}

  at::TensorList max_exp_avg_sqs(const Bucket& bucket) const {
    return amsgrad_ ? at::TensorList(bucket.slots[2]) : at::TensorList();
  }

  std::pair<double, double> betas_;
  double eps_;
  bool amsgrad_;

 private:
  static Traits traits(const Config& config, double default_weight_decay) {
    Traits traits = {
        .lr = 1e-3, .weight_decay = default_weight_decay, .slots = {"exp_avg", "exp_avg_sq"}};
    if (config.get("amsgrad", false)) traits.slots.emplace_back("max_exp_avg_sq");
    return traits;
  }
};

/// Adam (Kingma and Ba 2015), as torch.optim.Adam: weight decay is added to the gradient.
class Adam : public AdamBase {
 public:
  Adam(const Config& config, NamedParameters parameters)
      : AdamBase(config, std::move(parameters), 0) {}

 private:
  void update(const Bucket& bucket, double lr, double weight_decay) override {
    at::_fused_adam_(bucket.parameters, bucket.gradients, bucket.slots[0], bucket.slots[1],
                     max_exp_avg_sqs(bucket), bucket.steps, lr, betas_.first, betas_.second,
                     weight_decay, eps_, amsgrad_, /*maximize=*/false, /*grad_scale=*/{},
                     bucket.found_inf);
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim.AdamW.
class AdamW : public AdamBase {
 public:
  AdamW(const Config& config, NamedParameters parameters)
      : AdamBase(config, std::move(parameters), 1e-2) {}

 private:
  void update(const Bucket& bucket, double lr, double weight_decay) override {
    at::_fused_adamw_(bucket.parameters, bucket.gradients, bucket.slots[0], bucket.slots[1],
                      max_exp_avg_sqs(bucket), bucket.steps, lr, betas_.first, betas_.second,
                      weight_decay, eps_, amsgrad_, /*maximize=*/false, /*grad_scale=*/{},
                      bucket.found_inf);
  }
};

std::vector<Parameter> adam_parameters(std::string weight_decay) {
  return optimizer_parameters(
      "1e-3", std::move(weight_decay),
      {{"betas", "[0.9, 0.999]", "decay of the averages of the gradient and of its square"},
       {"eps", "1e-8", "added to the root of the average square"},
       {"amsgrad", "false", "divides by the largest average square so far (Reddi et al. 2018)"}});
}

STEPOP_REGISTER_OPTIMIZER(Adam, {"Adam (Kingma and Ba 2015), as torch.optim.Adam.",
                                 adam_parameters("0")});

STEPOP_REGISTER_OPTIMIZER(AdamW,
                          {"Adam with decoupled weight decay (Loshchilov and Hutter 2019), as "
                           "torch.optim.AdamW.",
                           adam_parameters("1e-2")});

}  // namespace
}  // namespace stepop
