#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/network.h"

namespace stepop {

/// Linear layers with rectifiers between them, each followed by dropout. Any tensor [B, ...] with
/// `inputs` numbers an example to logits [B, classes].
class MLP : public Network {
 public:
  explicit MLP(const Config& params) : dropout_(params.get("dropout", 0.0)) {
    if (!(dropout_ >= 0 && dropout_ < 1)) {
      throw params.error("dropout", "expected a probability from 0 to below 1");
    }
    int64_t width = inputs_ = params.get_at_least("inputs", 1);
    key_ = join_path(params.path(), "inputs");
    for (const int64_t next : params.get("hidden", std::vector<int64_t>{128})) {
      if (next < 1) throw params.error("hidden", "expected widths of 1 or more");
      layers_->push_back(torch::nn::Linear(width, next));
      width = next;
    }
    layers_->push_back(torch::nn::Linear(width, params.get_at_least("classes", 1, 10)));
    register_module("layers", layers_);
  }

  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = input.dim() < 2 ? input : input.flatten(1);
    if (x.dim() != 2 || x.size(1) != inputs_) {
      throw Error(fmt::format("expected {} numbers an example, by {}, found {}", inputs_, key_,
                              describe_tensor(input)));
    }
    for (size_t i = 0; i < layers_->size(); ++i) {
      if (i > 0) x = at::relu(x);
      if (i > 0 && dropout_ > 0) x = at::dropout(x, dropout_, is_training());
      x = layers_->ptr<torch::nn::LinearImpl>(i)->forward(x);
    }
    return x;
  }

 private:
  double dropout_;
  int64_t inputs_ = 0;
  std::string key_;
  torch::nn::ModuleList layers_;
};

STEPOP_REGISTER_MODEL(MLP, {"Linear layers with rectifiers between them.",
                            {{"inputs", "", "numbers in an example, such as 784"},
                             {"hidden", "[128]", "widths of the hidden layers"},
                             {"classes", "10", "number of logits"},
                             {"dropout", "0", "probability of a hidden value to be left out"}}});

}  // namespace stepop
