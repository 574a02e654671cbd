// Training steps of networks that Python exported, against the same in C++ and in PyTorch.
#include <ATen/Parallel.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/train/networks/network.h"
#include "tests/bench/hand_written.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(int64_t inputs, int64_t outputs, int64_t size, int64_t stride = 1) {
  return nn::Conv2d(
      nn::Conv2dOptions(inputs, outputs, size).stride(stride).padding(size / 2).bias(false));
}

/// As in exported_nets.py.
class Block : public nn::Module {
 public:
  Block(int64_t inputs, int64_t outputs, int64_t stride)
      : conv1_(register_module("conv1", convolution(inputs, outputs, 3, stride))),
        bn1_(register_module("bn1", nn::BatchNorm2d(outputs))),
        conv2_(register_module("conv2", convolution(outputs, outputs, 3))),
        bn2_(register_module("bn2", nn::BatchNorm2d(outputs))) {
    if (stride == 1 && inputs == outputs) return;
    downsample_ = register_module(
        "downsample",
        nn::Sequential(convolution(inputs, outputs, 1, stride), nn::BatchNorm2d(outputs)));
  }

  at::Tensor forward(const at::Tensor& x) {
    const auto y = bn2_->forward(conv2_->forward(at::relu(bn1_->forward(conv1_->forward(x)))));
    return at::relu(y + (downsample_ ? downsample_->forward(x) : x));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Sequential downsample_{nullptr};
};

/// As in exported_nets.py.
class BenchResNet18 : public Network {
 public:
  explicit BenchResNet18(const Config& /*params*/)
      : conv1_(register_module("conv1", convolution(3, 64, 7, 2))),
        bn1_(register_module("bn1", nn::BatchNorm2d(64))) {
    int64_t inputs = 64;
    for (const int64_t outputs : {64, 128, 256, 512}) {
      for (const int64_t stride : {inputs == outputs ? 1 : 2, 1}) {
        blocks_.push_back(register_module(fmt::format("layers{}", blocks_.size()),
                                          std::make_shared<Block>(inputs, outputs, stride)));
        inputs = outputs;
      }
    }
    fc_ = register_module("fc", nn::Linear(512, 10));
  }

  at::Tensor forward(const at::Tensor& images) override {
    auto x = at::max_pool2d(at::relu(bn1_->forward(conv1_->forward(images))), 3, 2, 1);
    for (const auto& block : blocks_) x = block->forward(x);
    return fc_->forward(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<std::shared_ptr<Block>> blocks_;
  nn::Linear fc_{nullptr};
};
STEPOP_REGISTER_MODEL(BenchResNet18, {"For benchmarks.", {}});

std::string training_of(const std::string& model, const std::string& shape) {
  return fmt::format(
      "model: {}\ndatasets: {{train: {{class: Synthetic, size: 1000, shape: {}}}}}\n"
      "batch_size: 4\n",
      model, shape);
}

/// `in_cpp`: the model of a config. `steps`: of a portion.
void bench(Process& process, const ScratchFolder& folder, const std::string& name,
           const std::string& in_cpp, const std::string& shape, int64_t steps, int rounds) {
  using Loop = HandWrittenLoop;
  const auto loop = [&](const std::string& model) {
    return Loop(training_of(model, shape), Loop::Data::kPrepared, Loop::Optimizer::kFusedKernel);
  };
  Loop exported = loop(fmt::format("{{class: Exported, path: {}/{}.pt2}}", folder.path(), name));
  Loop by_hand = loop(in_cpp);
  const int threads = at::get_num_threads();
  for (const int count : std::set<int>{1, threads}) {
    at::set_num_threads(count);
    const auto ask = [&](const char* optimizer) {
      return process.ask_seconds(fmt::format("{} {} {} {}", name, optimizer, count, steps));
    };
    const auto times =
        take_turns(rounds, {[&] { return exported.time_steps(steps); },
                            [&] { return by_hand.time_steps(steps); }, [&] { return ask("adam"); },
                            [&] { return ask("fused"); }});
    const auto speed = [&](size_t i) {
      return per_second(static_cast<double>(steps), median(times[i]), "steps");
    };
    const char* baselines[] = {"", "the same in C++", "PyTorch, Adam", "PyTorch, Adam(fused=True)"};
    for (size_t i = 1; i < times.size(); ++i) {
      print_row({fmt::format("{}, {} thread{}", name, count, count == 1 ? "" : "s"), baselines[i],
                 speedup(times[0], times[i]), speed(0), speed(i)});
    }
  }
}

}  // namespace

void bench_exported() {
  print_header("Training steps of exported networks, batch 4, Adam");
  const ScratchFolder folder;
  Process process(
      {python(), "-B", STEPOP_SOURCE_DIR "/tests/bench/exported_nets.py", folder.path()}, ".");
  process.read_line();
  bench(process, folder, "lenet", "LeNet", "[1, 28, 28]", 30, 30);
  bench(process, folder, "resnet18", "BenchResNet18", "[3, 64, 64]", 2, 15);
}

}  // namespace stepop::bench
