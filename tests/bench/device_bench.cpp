// Training steps on a GPU against the same networks in PyTorch, and how often a step waits for the
// GPU. STEPOP_BENCH_DEVICE=cpu tries the code where there is none.
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/networks/network.h"
#include "runtime/train/run/device.h"
#include "tests/bench/device_waits.h"
#include "tests/bench/hand_written.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"

namespace stepop::bench {
namespace {

namespace nn = torch::nn;

/// As in pytorch_device.py.
class TransformerBlock : public nn::Module {
 public:
  explicit TransformerBlock(int64_t width)
      : qkv_(register_module("qkv", nn::Linear(width, 3 * width))),
        out_(register_module("out", nn::Linear(width, width))),
        up_(register_module("up", nn::Linear(width, 4 * width))),
        down_(register_module("down", nn::Linear(4 * width, width))) {}

  at::Tensor forward(const at::Tensor& x) {
    constexpr int64_t kPerHead = 64;
    const int64_t width = x.size(2);
    const auto qkv = qkv_->forward(at::layer_norm(x, width))
                         .view({x.size(0), x.size(1), 3, width / kPerHead, kPerHead})
                         .permute({2, 0, 3, 1, 4});
    const auto seen = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, true);
    const auto y = x + out_->forward(seen.transpose(1, 2).reshape(x.sizes()));
    return y + down_->forward(at::gelu(up_->forward(at::layer_norm(y, width))));
  }

 private:
  nn::Linear qkv_, out_, up_, down_;
};

/// As in pytorch_device.py: of GPT-2's size, between 768 numbers per token and ten classes.
class BenchTransformer : public Network {
 public:
  explicit BenchTransformer(const Config& /*params*/) {
    constexpr int64_t kWidth = 768;
    for (int i = 0; i < 12; ++i) {
      blocks_.push_back(
          register_module(fmt::format("blocks{}", i), std::make_shared<TransformerBlock>(kWidth)));
    }
    logits_ = register_module("logits", nn::Linear(kWidth, 10));
  }

  at::Tensor forward(const at::Tensor& tokens) override {
    at::Tensor x = tokens.flatten(0, 1);
    for (const auto& block : blocks_) x = block->forward(x);
    return logits_->forward(at::layer_norm(x, x.size(2)).mean(1));
  }

 private:
  std::vector<std::shared_ptr<TransformerBlock>> blocks_;
  nn::Linear logits_{nullptr};
};
STEPOP_REGISTER_MODEL(BenchTransformer, {"For benchmarks.", {}});

std::string device_name() {
  const char* name = std::getenv("STEPOP_BENCH_DEVICE");
  return name == nullptr ? "cuda" : name;
}

struct Case {
  std::string name;   ///< as pytorch_device.py knows it
  std::string lines;  ///< of the config
  int64_t batch_size;
  int64_t steps;  ///< of a portion
  int rounds;
};

std::string classifier(const std::string& model, const std::string& shape, int64_t size) {
  return fmt::format(
      "iterator: Classifier\nmodel: {}\noptimizer: {{class: Adam, lr: 1e-3}}\n"
      "datasets: {{train: {{class: Synthetic, size: {}, shape: {}}}}}\n",
      model, size, shape);
}

std::vector<Case> all_cases() {
  const std::string lenet = classifier("LeNet", "[1, 28, 28]", 60000);
  const std::string vunet =
      "iterator: VUNetIterator\n"
      "model: {class: VUNet, spatial_size: 256, nf_start: 32, nf_max: 64}\n"
      "losses: {color_L1: {weight: 10}, KL: {weight: 1e-4}}\n"
      "optimizer: {class: Adam, lr: 1e-4}\n"
      "datasets: {train: {class: Figures, size: 256}}\n";
  return {{"lenet", lenet, 4, 200, 6},
          {"lenet", lenet, 64, 200, 6},
          {"resnet18", classifier("BenchResNet18", "[3, 224, 224]", 2000), 64, 10, 6},
          {"transformer", classifier("BenchTransformer", "[1, 256, 768]", 2000), 16, 10, 6},
          {"vunet", vunet, 8, 5, 6}};
}

std::string yaml_of(const Case& c, const std::string& options) {
  const bool logs = options.find("log_ops") != std::string::npos;
  return fmt::format("{}batch_size: {}\n{}device: {}\nn_data_processes: {}\n{}", c.lines,
                     c.batch_size, logs ? "" : "log_ops: []\n", device_name(),
                     c.name == "lenet" ? 1 : 6, options);
}

/// A row for each of `kinds`, which pytorch_device.py knows; `options` are lines of the config.
void compare(const Case& c, const std::string& options, const std::string& what,
             const std::vector<std::string>& kinds) {
  Process process({python(), "-B", STEPOP_SOURCE_DIR "/tests/bench/pytorch_device.py",
                   device_name(), c.name, std::to_string(c.batch_size)},
                  ".");
  std::vector<Portion> others;
  for (const auto& kind : kinds) {
    others.emplace_back([&process, line = fmt::format("{} {}", kind, c.steps)] {
      return process.ask_seconds(line);
    });
  }
  const bool has_loop = c.name != "vunet" && options.empty();
  std::unique_ptr<HandWrittenLoop> by_hand;
  if (has_loop) {
    by_hand = std::make_unique<HandWrittenLoop>(yaml_of(c, ""), HandWrittenLoop::Data::kPrepared,
                                                HandWrittenLoop::Optimizer::kFusedKernel);
    others.emplace_back([&] { return by_hand->time_steps(c.steps); });
  }
  const auto times = take_turns_with_training(yaml_of(c, options), c.steps, c.rounds, others);
  const auto text = [&](size_t i) {
    return per_second(static_cast<double>(c.steps * c.batch_size), median(times[i]), "examples");
  };
  for (size_t i = 1; i < times.size(); ++i) {
    print_row(
        {fmt::format("{}, batch {}{}", c.name, c.batch_size, what),
         i > kinds.size() ? "LibTorch by hand, batches on the GPU" : "PyTorch, " + kinds[i - 1],
         speedup(times[0], times[i]), text(0), text(i)});
  }
}

/// Tells of the waits of single steps.
class WaitsBySteps : public Hook {
 public:
  void before_step(int64_t step) override {
    if (step > 0) ++steps_[waits_text(waits_.take())];
  }
  void print(const std::string& what) {
    for (const auto& [waits, steps] : steps_) {
      fmt::print("  {:<28} {:>4} steps wait {}\n", what, steps, waits);
    }
    std::fflush(stdout);
  }

 private:
  DeviceWaits waits_;
  std::map<std::string, int64_t> steps_;
};

void count_waits(const Case& c, const std::string& what, const std::string& options) {
  WaitsBySteps waits;
  train(yaml_of(c, options), 40, &waits);
  waits.print(fmt::format("{}{}", c.name, what));
}

}  // namespace

void bench_device() {
  if (device_name() == "cuda" &&
      (!at::hasCUDA() || at::detail::getCUDAHooks().deviceCount() == 0)) {
    fmt::print("\nTraining steps on a GPU: there is none\n");
    return;
  }
  const char* chosen = std::getenv("STEPOP_BENCH_CASES");  // lenet,vunet
  const auto is_wanted = [&](const std::string& name) {
    return chosen == nullptr || std::string(chosen).find(name) != std::string::npos;
  };
  print_header("How often a training step waits for the GPU");
  for (const Case& c : all_cases()) {
    if (!is_wanted(c.name) || (c.name == "lenet" && c.batch_size == 64)) continue;
    count_waits(c, "", "");
    if (c.name != "lenet") continue;
    Case clipped = c;
    clipped.lines.replace(clipped.lines.find("lr:"), 3, "clip_norm: 1, lr:");
    count_waits(clipped, ", on_nan: skip, clip_norm", "on_nan: skip\n");
    count_waits(c, ", ema, accumulate: 2", "ema: {decay: 0.99}\naccumulate: 2\n");
    if (device_name() != "cpu") count_waits(c, ", cuda_graph", "cuda_graph: true\n");
    count_waits(c, ", a log every 10 steps", "log_ops: [train/log_op]\nlog_freq: 10\n");
    count_waits(c, ", checkpoints every 10 steps", "ckpt_freq: 10\n");
  }
  print_header("Training steps on a GPU");
  for (const Case& c : all_cases()) {
    if (!is_wanted(c.name)) continue;
    const bool compiles = std::getenv("STEPOP_BENCH_COMPILE") != nullptr;
    std::vector<std::string> kinds = {"adam", "fused"};
    if (c.name == "lenet") kinds.emplace_back("fused+graph");
    if (compiles) kinds.emplace_back("fused+compile");
    compare(c, "", "", kinds);
    if (c.name == "lenet") {
      if (device_name() != "cpu") {
        compare(c, "cuda_graph: true\n", ", cuda_graph", {"fused", "fused+graph"});
      }
      continue;
    }
    kinds = {"fused+bfloat16"};
    if (compiles) kinds.emplace_back("fused+bfloat16+compile");
    compare(c, "precision: bfloat16\n", ", bfloat16", kinds);
    if (c.name != "resnet18") continue;
    compare(c, "precision: bfloat16\nchannels_last: true\n", ", bfloat16, channels_last",
            {"fused+bfloat16+channels_last"});
  }
}

}  // namespace stepop::bench
