#include "tests/bench/hand_written.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>

#include <utility>

#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/run/device.h"
#include "tests/bench/measure.h"
#include "tests/bench/training.h"

namespace stepop::bench {

HandWrittenLoop::HandWrittenLoop(const std::string& yaml, Data data, Optimizer optimizer,
                                 Convolutions convolutions)
    : device_(read_device(config_of(yaml))),
      convolutions_(convolutions),
      is_sgd_(optimizer == Optimizer::kFusedSgd) {
  const Config config = config_of(yaml);
  seed_generators(1, c10::kCPU);
  network_ = std::dynamic_pointer_cast<Network>(models().build(config, "model"));
  network_->to(device_);
  dataset_ = datasets().build(config, "datasets/train");
  batch_size_ = config.get<int64_t>("batch_size");
  Splits splits(config, /*seed=*/1, c10::kCPU);
  const BatchOrder& order = splits.order("train");
  for (int64_t batch = 0; batch < order.batches_per_epoch(); ++batch) {
    for (const int64_t index : order.indices(batch)) order_.push_back(index);
  }
  if (data == Data::kPrepared) {
    const int batches = device_.is_cpu() ? 100 : 4;
    for (int i = 0; i < batches; ++i) prepared_.push_back(next_batch().to(device_));
    position_ = 0;
  }
  parameters_ = network_->parameters();
  if (optimizer == Optimizer::kTorchOptim) {
    adam_ = std::make_unique<torch::optim::Adam>(parameters_, torch::optim::AdamOptions(1e-3));
    return;
  }
  for (const auto& parameter : parameters_) {
    exp_avgs_.push_back(at::zeros_like(parameter.detach()));
    exp_avg_sqs_.push_back(at::zeros_like(parameter.detach()));
    counts_.push_back(at::zeros({}, at::TensorOptions(at::kFloat).device(device_)));
  }
}

HandWrittenLoop::~HandWrittenLoop() = default;

Batch HandWrittenLoop::next_batch() {
  const auto count = static_cast<size_t>(batch_size_);
  if (position_ + count > order_.size()) position_ = 0;
  const std::span<const int64_t> indices(order_.data() + position_, count);
  position_ += count;
  std::vector<Random> randoms(count, Random(0));
  return *dataset_->get_batch(indices, randoms);
}

void HandWrittenLoop::step(const Batch& batch) {
  const at::Tensor logits = network_->forward(batch["image"]);
  const at::Tensor loss = at::cross_entropy_loss(logits, batch["class"]);
  if (adam_) {
    adam_->zero_grad();
    loss.backward();
    adam_->step();
    return;
  }
  loss.backward();
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters_) gradients.push_back(parameter.grad());
  if (is_sgd_) {  // momenta in the place of averages
    at::_fused_sgd_(parameters_, gradients, exp_avgs_, /*weight_decay=*/0, /*momentum=*/0.9,
                    /*lr=*/1e-3, /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                    std::exchange(is_first_, false));
    for (const auto& parameter : parameters_) parameter.mutable_grad().reset();
    return;
  }
  count_update();
  at::_fused_adam_(parameters_, gradients, exp_avgs_, exp_avg_sqs_, {}, counts_, /*lr=*/1e-3,
                   /*beta1=*/0.9, /*beta2=*/0.999, /*weight_decay=*/0, /*eps=*/1e-8,
                   /*amsgrad=*/false, /*maximize=*/false);
  for (const auto& parameter : parameters_) parameter.mutable_grad().reset();
}

void HandWrittenLoop::count_update() {
  if (!device_.is_cpu()) return at::_foreach_add_(counts_, 1);
  for (const auto& count : counts_) *count.mutable_data_ptr<float>() += 1;
}

double HandWrittenLoop::time_steps(int64_t steps) {
  at::Context& libtorch = at::globalContext();
  const bool is_ours_with_onednn = libtorch.userEnabledMkldnn();
  if (convolutions_ == Convolutions::kByOneDnn) libtorch.setUserEnabledMkldnn(true);
  const Stopwatch watch;
  for (int64_t i = 0; i < steps; ++i) {
    if (prepared_.empty()) {
      step(next_batch().to(device_));
    } else {
      step(prepared_[position_++ % prepared_.size()]);
    }
  }
  synchronize(device_);
  const double seconds = watch.seconds();
  libtorch.setUserEnabledMkldnn(is_ours_with_onednn);
  return seconds;
}

}  // namespace stepop::bench
