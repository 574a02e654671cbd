// What the training of state_test.cpp is made of: registered here, named in its config.
#include "tests/runtime/train/loop/state_components.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <limits>
#include <thread>

#include "runtime/data/dataset.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"

namespace stepop {

std::atomic<int>& calls_in_workers() {
  static std::atomic<int> calls = 0;
  return calls;
}

namespace {

/// One weight under two names, running statistics, dropout.
class TestStateEncoder : public Network {
 public:
  explicit TestStateEncoder(const Config& /*params*/)
      : first_(register_module("first", torch::nn::Linear(9, 9))),
        norm_(register_module("norm", torch::nn::BatchNorm1d(9))),
        dropout_(register_module("dropout", torch::nn::Dropout(0.3))),
        tied_(register_parameter("tied", first_->weight)) {}

  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor hidden = norm_->forward(first_->forward(images.flatten(1))).relu();
    return at::linear(dropout_->forward(hidden), tied_);
  }

 private:
  torch::nn::Linear first_;
  torch::nn::BatchNorm1d norm_;
  torch::nn::Dropout dropout_;
  at::Tensor tied_;
};

class TestStateHead : public Network {
 public:
  explicit TestStateHead(const Config& /*params*/)
      : linear_(register_module("linear", torch::nn::Linear(9, 3))) {}
  at::Tensor forward(const at::Tensor& hidden) override { return linear_->forward(hidden); }

 private:
  torch::nn::Linear linear_;
};

/// Its first batches take so long that the workers start.
class TestSlowStart : public Dataset {
 public:
  explicit TestSlowStart(const Config& params) : source_(datasets().build(params, "dataset")) {}
  int64_t size() const override { return source_->size(); }
  Example get(int64_t index, Random& random) const override {
    if (calls_++ < 8) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (std::this_thread::get_id() != maker_) ++calls_in_workers();
    return source_->get(index, random);
  }

 private:
  std::unique_ptr<Dataset> source_;
  std::thread::id maker_ = std::this_thread::get_id();
  mutable std::atomic<int> calls_ = 0;
};

/// Two optimizers, one NaN that is skipped, and numbers of its own that change the training.
class TestStateTrainer : public Iterator {
 public:
  explicit TestStateTrainer(const Context& context)
      : Iterator(context),
        encoder_(context.network<Network>("encoder")),
        head_(context.network<Network>("head")),
        update_encoder_(context.update("encoder_optimizer", {"encoder"})),
        update_head_(context.update("head_optimizer", {"head"})),
        center_(at::zeros({9}, at::TensorOptions(context.device))) {
    context.track("seen", seen_);
    context.track("level", level_);
    context.track("center", center_);
    context.track("last", last_);
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor hidden = encoder_->forward(batch["image"]);
    const at::Tensor logits = head_->forward(hidden);
    at::Tensor losses = at::cross_entropy_loss(logits, batch["class"], {}, at::Reduction::None);
    const at::Tensor age =
        at::full({batch.size()}, static_cast<double>(global_step()), batch["image"].options());
    return {.train_op =
                [=, this] {
                  double weight = 1 + 0.1 * static_cast<double>(seen_ % 7) + 0.1 * level_;
                  if (global_step() == 2) weight = std::numeric_limits<double>::quiet_NaN();
                  at::Tensor loss = losses.mean() * weight + (hidden - center_).pow(2).mean() * 0.1;
                  if (last_.defined()) loss = loss * (1 + 0.1 * last_.sigmoid());
                  update_encoder_.backward(loss, /*retain_graph=*/true);
                  update_head_.backward(loss);
                  if (this->context().clock.is_last_micro_batch()) {
                    update_encoder_.apply();
                    update_head_.apply();
                  }
                  ++seen_;
                  level_ = 0.9 * level_ + 0.1;
                  center_ = center_ * 0.9 + hidden.detach().mean(0) * 0.1;
                  last_ = losses.detach().mean();
                  return Scalars{{"loss", last_}};
                },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"loss", losses.mean()}}, .images = {}};
                },
            .eval_op =
                [=] {
                  return EvalOutputs{.outputs = {{"logits", logits}},
                                     .labels = {{"loss", losses}, {"age", age}}};
                }};
  }

 private:
  std::shared_ptr<Network> encoder_;
  std::shared_ptr<Network> head_;
  Update& update_encoder_;
  Update& update_head_;
  int64_t seen_ = 0;
  double level_ = 0;
  at::Tensor center_;
  at::Tensor last_;  // undefined before the first step
};

STEPOP_REGISTER_MODEL(TestStateEncoder, {"For tests.", {}});
STEPOP_REGISTER_MODEL(TestStateHead, {"For tests.", {}});
STEPOP_REGISTER_DATASET(TestSlowStart, {"For tests.", {{"dataset", "", "the other one"}}});
STEPOP_REGISTER_ITERATOR(TestStateTrainer, {"For tests.", {}});

}  // namespace
}  // namespace stepop
