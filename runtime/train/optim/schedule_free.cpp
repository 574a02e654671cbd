#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/optim/optimizer.h"

namespace stepop {
namespace {

/// AdamW without a schedule (Defazio et al. 2024), as AdamWScheduleFree of the authors' package
/// schedulefree. The parameters are y, where gradients are taken; the slot z makes the steps, and
/// the averages x = y + (1 - 1 / beta1) * (z - y) are evaluated.
class ScheduleFreeAdamW : public Optimizer {
 public:
  struct Params : OptimizerParams {
    std::array<double, 2> betas = {0.9, 0.999};
    double eps = 1e-8;
    double r = 0;
    double weight_lr_power = 2;

    Params() { lr = 2.5e-3; }
    void declare(Parameters& p) {
      p.add("betas", betas,
            "how near gradients are taken to the averages; decay of the average square",
            at_least(0).below(1));
      p.add("eps", eps, "added to the root of the average square", at_least(0));
      p.add("r", r, "later weights count in the averages by updates ^ r");
      p.add("weight_lr_power", weight_lr_power,
            "weights count by the largest lr so far ^ weight_lr_power");
    }
  };

  ScheduleFreeAdamW(const Params& params, const Config& config, NamedParameters parameters)
      : Optimizer(config, std::move(parameters),
                  {.lr = params.lr,
                   .weight_decay = params.weight_decay,
                   .slots = {"z", "exp_avg_sq", "lr_max", "weight_sum"},
                   .first_update_differs = true}),
        p_(params) {
    if (p_.betas[0] > 0) return;
    throw config.error("betas", "expected a first number above 0, found 0");
  }

  bool has_averages() const override { return true; }

  std::vector<std::pair<at::Tensor, at::Tensor>> averages() const override {
    std::vector<std::pair<at::Tensor, at::Tensor>> averages;
    for (const Bucket* bucket : buckets()) {
      for (size_t i = 0; i < bucket->parameters.size(); ++i) {
        const at::Tensor y = bucket->parameters[i].detach();
        averages.emplace_back(
            bucket->parameters[i],
            bucket->is_first[i] ? y : y.lerp(bucket->slots[0][i], 1 - 1 / p_.betas[0]));
      }
    }
    return averages;
  }

 private:
  at::Tensor make_slot(const Bucket& bucket, size_t slot, size_t i) const override {
    const bool is_number = slot >= 2;
    return is_number ? at::zeros({}, bucket.steps[i].options().dtype(at::kDouble))
                     : Optimizer::make_slot(bucket, slot, i);
  }

  void update(const Bucket& bucket, double lr, double weight_decay) override {
    for (size_t i = 0; i < bucket.parameters.size(); ++i) update_one(bucket, i, lr, weight_decay);
  }

  void update_one(const Bucket& bucket, size_t i, double lr, double weight_decay) const {
    const auto& [beta1, beta2] = p_.betas;
    const at::Tensor& y = bucket.parameters[i];
    const at::Tensor& gradient = bucket.gradients[i];
    const at::Tensor z = bucket.is_first[i] ? y.clone() : bucket.slots[0][i];
    const at::Tensor step = bucket.steps[i].to(at::kDouble).clamp_min(1);

    const at::Tensor squares =
        bucket.slots[1][i].mul(beta2).addcmul_(gradient, gradient, 1 - beta2);
    const at::Tensor correction = at::pow(beta2, step).neg_().add_(1);
    at::Tensor change = gradient.div(squares.div(correction).sqrt_().add_(p_.eps));
    if (weight_decay != 0) change = change.add(y, weight_decay);

    const at::Tensor lr_max = bucket.slots[2][i].clamp_min(lr);
    const at::Tensor weight = lr_max.pow(p_.weight_lr_power).mul_(step.pow(p_.r));
    const at::Tensor sum = bucket.slots[3][i].add(weight);
    // A learning rate of 0, where a warm-up begins, moves no average.
    const at::Tensor part = at::where(sum.eq(0), 0.0, weight.div(sum)).to(y.scalar_type());

    const at::Tensor rate = part.neg().add_(1).mul_(beta1).sub_(1).mul_(lr);
    assign(bucket, y, y.lerp(z, part).add(change.mul(rate)));
    assign(bucket, bucket.slots[0][i], z.sub(change, lr));
    assign(bucket, bucket.slots[1][i], squares);
    assign(bucket, bucket.slots[2][i], lr_max);
    assign(bucket, bucket.slots[3][i], sum);
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(
    ScheduleFreeAdamW,
    {"AdamW without a schedule (Defazio et al. 2024), as schedulefree.AdamWScheduleFree: averages "
     "of the weights are evaluated, in place of a rate that falls."});

}  // namespace
}  // namespace stepop
