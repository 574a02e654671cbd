// What other tests train: registered here once, as a source of a user's would.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/rand.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

class TestDropoutNet : public Network {
 public:
  explicit TestDropoutNet(const Config& params)
      : first_(register_module("first", torch::nn::Linear(params.get<int64_t>("inputs"), 6))),
        norm_(register_module("norm", torch::nn::BatchNorm1d(6))),
        dropout_(register_module("dropout", torch::nn::Dropout(0.4))),
        last_(register_module("last", torch::nn::Linear(6, 3))) {}

  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor hidden = norm_->forward(first_->forward(images.flatten(1))).relu();
    return last_->forward(dropout_->forward(hidden));
  }

 private:
  torch::nn::Linear first_;
  torch::nn::BatchNorm1d norm_;
  torch::nn::Dropout dropout_;
  torch::nn::Linear last_;
};

/// Every op draws random numbers, and step_op does, too.
class TestTrainer : public Iterator {
 public:
  explicit TestTrainer(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {
    context.track("updates", updates_);
    context.track("last_loss", last_loss_);
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor logits = model_->forward(batch["image"]);
    const at::Tensor loss = at::cross_entropy_loss(logits, batch["class"], {}, at::Reduction::None);
    const auto log = [=] {
      return Logs{.scalars = {{"noise", at::rand({}, loss.options())}, {"loss", loss.mean()}},
                  .images = {{"noise", at::rand({2, 1, 3, 3}, loss.options())}}};
    };
    return {.train_op =
                [=, this] {
                  update_.step(loss.mean());
                  last_loss_ = loss.mean().detach();
                  return Scalars{{"loss", last_loss_}, {"update", ++updates_}};
                },
            .log_op = log,
            .eval_op =
                [=] {
                  return EvalOutputs{
                      .outputs = {{"logits", logits + at::rand({1}, loss.options())}},
                      .labels = {{"loss", loss}, {"index", batch["index"]}}};
                },
            .log_ops = {{"sample_op", log}}};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  int64_t updates_ = 0;
  at::Tensor last_loss_;  // undefined before the first step
};

STEPOP_REGISTER_MODEL(TestDropoutNet, {"For tests.", {{"inputs", "", "numbers an example"}}});
STEPOP_REGISTER_ITERATOR(TestTrainer, {"For tests.", {}});

}  // namespace
}  // namespace stepop
