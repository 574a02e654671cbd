#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include "runtime/network.h"

namespace stepop {

/// Linear layers with rectifiers between them. Anything [B, ...] with `inputs` numbers an example
/// to logits [B, classes].
class MLP : public Network {
 public:
  explicit MLP(const Config& params) {
    int64_t width = params.get_at_least("inputs", 1);
    for (const int64_t next : params.get("hidden", std::vector<int64_t>{128})) {
      if (next < 1) throw params.error("hidden", "expected widths of 1 or more");
      layers_->push_back(torch::nn::Linear(width, next));
      width = next;
    }
    layers_->push_back(torch::nn::Linear(width, params.get_at_least("classes", 1, 10)));
    register_module("layers", layers_);
  }

  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = input.flatten(1);
    for (size_t i = 0; i < layers_->size(); ++i) {
      if (i > 0) x = at::relu(x);
      x = layers_->ptr<torch::nn::LinearImpl>(i)->forward(x);
    }
    return x;
  }

 private:
  torch::nn::ModuleList layers_;
};

STEPOP_REGISTER_MODEL(MLP, {"Linear layers with rectifiers between them.",
                            {{"inputs", "", "numbers in an example, such as 784"},
                             {"hidden", "[128]", "widths of the hidden layers"},
                             {"classes", "10", "number of logits"}}});

}  // namespace stepop
