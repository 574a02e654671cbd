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
  struct Params {
    int64_t inputs = 0;
    std::vector<int64_t> hidden = {128};
    int64_t classes = 10;
    double dropout = 0;

    void declare(Parameters& p) {
      p.require("inputs", inputs, "numbers in an example, such as 784", at_least(1));
      p.add("hidden", hidden, "widths of the hidden layers", at_least(1));
      p.add("classes", classes, "number of logits", at_least(1));
      p.add("dropout", dropout, "probability of a hidden value to be left out",
            at_least(0).below(1));
    }
  };

  MLP(const Params& params, const Config& config)
      : dropout_(params.dropout), inputs_(params.inputs), key_(join_path(config.path(), "inputs")) {
    int64_t width = inputs_;
    for (const int64_t next : params.hidden) {
      layers_->push_back(torch::nn::Linear(width, next));
      width = next;
    }
    layers_->push_back(torch::nn::Linear(width, params.classes));
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
  int64_t inputs_;
  std::string key_;
  torch::nn::ModuleList layers_;
};

STEPOP_REGISTER_MODEL(MLP, {"Linear layers with rectifiers between them."});

}  // namespace stepop
