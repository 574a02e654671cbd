#include <ATen/ops/_fused_sgd.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/optim/optimizer.h"

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

  /// The first momentum of a parameter is its gradient, without dampening, so parameters that are
  /// updated for the first time need a call of their own.
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

}  // namespace
}  // namespace stepop
