// Adam for sparse gradients, which embeddings with `sparse` have.
#include <ATen/ops/_fused_adam.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/optim/foreach_optimizer.h"

namespace stepop {
namespace {

/// As torch.optim.SparseAdam: the rows that a batch has named are updated, with their averages; all
/// others stay. Where that class refuses a dense gradient, this one is Adam.
class SparseAdam : public ForeachOptimizer {
 public:
  using Params = AdamParams;

  SparseAdam(const Params& params, const Config& config, NamedParameters parameters)
      : ForeachOptimizer(
            config, std::move(parameters),
            {.lr = params.lr, .slots = {"exp_avg", "exp_avg_sq"}, .takes_sparse = true}),
        p_(params) {
    refuse_weight_decay(config, "SparseAdam");
  }

 private:
  void change(const Bucket& bucket, double lr, double /*weight_decay*/) override {
    Bucket dense;
    dense.slots.resize(2);
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      if (bucket.gradients[i].is_sparse()) {
        change_rows(bucket, i, lr);
        continue;
      }
      dense.parameters.push_back(bucket.parameters[i]);
      dense.gradients.push_back(bucket.gradients[i]);
      dense.steps.push_back(bucket.steps[i]);
      for (size_t slot = 0; slot < 2; ++slot) {
        dense.slots[slot].push_back(bucket.slots[slot][i]);
      }
    }
    if (dense.parameters.empty()) return;
    at::_fused_adam_(dense.parameters, dense.gradients, dense.slots[0], dense.slots[1],
                     /*max_exp_avg_sqs=*/{}, dense.steps, lr, p_.betas[0], p_.betas[1],
                     /*weight_decay=*/0, p_.eps, /*amsgrad=*/false, /*maximize=*/false);
  }

  void change_rows(const Bucket& bucket, size_t i, double lr) const {
    const at::Tensor gradient = bucket.gradients[i].coalesce();  // each row once
    if (gradient.sparse_dim() != 1) {
      throw Error("SparseAdam: expected a gradient of rows, as an embedding has it, found " +
                  describe_tensor(gradient));
    }
    const at::Tensor rows = gradient._indices()[0];
    if (rows.numel() == 0) return;
    const at::Tensor values = gradient._values();
    const at::Tensor mean = bucket.slots[0][i].index_select(0, rows).lerp_(values, 1 - p_.betas[0]);
    const at::Tensor square =
        bucket.slots[1][i].index_select(0, rows).lerp_(values.square(), 1 - p_.betas[1]);
    bucket.slots[0][i].index_copy_(0, rows, mean);
    bucket.slots[1][i].index_copy_(0, rows, square);
    const auto step = bucket.steps[i].item<double>();
    const double size =
        lr * std::sqrt(1 - std::pow(p_.betas[1], step)) / (1 - std::pow(p_.betas[0], step));
    bucket.parameters[i].index_add_(0, rows, mean.div(square.sqrt().add_(p_.eps)), -size);
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(
    SparseAdam, {"Adam for embeddings with sparse gradients, as torch.optim.SparseAdam; for dense "
                 "gradients it is Adam."});

}  // namespace
}  // namespace stepop
