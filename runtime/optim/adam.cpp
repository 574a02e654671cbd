#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

#include "runtime/optim/optimizer.h"

namespace stepop {
namespace {

/// What Adam and AdamW share: only where the weight decay acts tells them apart.
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

std::vector<Parameter> parameters(std::string weight_decay) {
  return optimizer_parameters(
      "1e-3", std::move(weight_decay),
      {{"betas", "[0.9, 0.999]", "decay of the averages of the gradient and of its square"},
       {"eps", "1e-8", "added to the root of the average square"},
       {"amsgrad", "false", "divides by the largest average square so far (Reddi et al. 2018)"}});
}

STEPOP_REGISTER_OPTIMIZER(Adam,
                          {"Adam (Kingma and Ba 2015), as torch.optim.Adam.", parameters("0")});

STEPOP_REGISTER_OPTIMIZER(AdamW,
                          {"Adam with decoupled weight decay (Loshchilov and Hutter 2019), as "
                           "torch.optim.AdamW.",
                           parameters("1e-2")});

}  // namespace
}  // namespace stepop
