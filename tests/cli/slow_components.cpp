// Components that take long, each telling by a file when it is inside; and one that fails in one of
// several processes; and an iterator that does there what none may.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <thread>

#include "eval_out/callbacks/callback.h"
#include "runtime/data/dataset.h"
#include "runtime/train/iterator/hook.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

constexpr std::chrono::minutes kVeryLong{2};

/// Was there before `main`, as what LibTorch registers; tells of its end.
const struct Early {
  ~Early() {
    if (std::getenv("STEPOP_TEST_TELLS_END") != nullptr) std::fputs("destroyed\n", stderr);
  }
} early;

/// Another dataset, each example of which takes `seconds`; while the file `stuck` exists those from
/// number `stuck_from` on take minutes: the file `stuck.inside` appears, and
/// `stuck.over` when one is through.
class SlowDataset : public Dataset {
 public:
  explicit SlowDataset(const Config& params)
      : source_(datasets().build(params, "dataset")),
        seconds_(params.get("seconds", 0.0)),
        stuck_(params.get("stuck", "")),
        stuck_from_(params.get("stuck_from", 0)) {}

  int64_t size() const override { return source_->size(); }

  Example get(int64_t index, Random& random) const override {
    std::this_thread::sleep_for(seconds_);
    if (index >= stuck_from_ && !stuck_.empty() && std::filesystem::exists(stuck_)) {
      std::ofstream(stuck_ + ".inside");
      std::this_thread::sleep_for(kVeryLong);
      std::ofstream(stuck_ + ".over");
    }
    return source_->get(index, random);
  }

  at::Tensor labels(std::string_view key) const override { return source_->labels(key); }

 private:
  std::unique_ptr<Dataset> source_;
  std::chrono::duration<double> seconds_;
  std::string stuck_;
  int64_t stuck_from_;
};

/// Another dataset, of which the process with the number `rank` cannot get an example that it asks
/// for after `after` others: it throws, ends by a signal, hangs, or has NaN, as `how` says.
class FailingRank : public Dataset {
 public:
  explicit FailingRank(const Config& params)
      : source_(datasets().build(params, "dataset")),
        how_(params.get("how", "none")),
        after_(params.get("after", 0)) {
    const char* const own = std::getenv("RANK");
    is_failing_ = own != nullptr && params.get("rank", 1) == std::atoi(own) && how_ != "none";
  }

  int64_t size() const override { return source_->size(); }

  Example get(int64_t index, Random& random) const override {
    Example example = source_->get(index, random);
    if (!is_failing_ || got_++ < after_) return example;
    if (how_ == "throw") throw std::runtime_error("its disk is broken");
    if (how_ == "kill") std::raise(SIGKILL);
    if (how_ == "hang") std::this_thread::sleep_for(kVeryLong);
    at::Tensor& image = example.tensors["image"];
    image = image * std::nan("");
    return example;
  }

  at::Tensor labels(std::string_view key) const override { return source_->labels(key); }

 private:
  std::unique_ptr<Dataset> source_;
  std::string how_;
  int64_t after_;
  bool is_failing_ = false;
  mutable std::atomic<int64_t> got_ = 0;
};

/// While the file `stuck_callback` exists, reads the outputs row by row for minutes.
Logs slow_callback(const CallbackArguments& arguments) {
  if (!std::filesystem::exists("stuck_callback")) return {};
  std::ofstream("stuck_callback.inside");
  const std::string key = arguments.data_out.keys().front();
  for (auto left = kVeryLong / std::chrono::milliseconds(20); left > 0; --left) {
    arguments.data_out.read(key, left % arguments.data_out.rows(), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::ofstream("stuck_callback.over");
  return {};
}

/// Each step takes `milliseconds` with one thread and four times as long with more; with
/// `n_prefetch: 8` there is no step at all.
class SleepyStep : public Hook {
 public:
  SleepyStep(const Config& params, const Context& context)
      : one_(params.get("milliseconds", 1.0)), can_(context.config.get("n_prefetch", 2) != 8) {}

  void before_step(int64_t) override {
    if (!can_) throw std::runtime_error("no such kernel");
    std::this_thread::sleep_for(one_ * (at::get_num_threads() == 1 ? 1 : 4));
  }

 private:
  std::chrono::duration<double, std::milli> one_;
  bool can_;
};

/// Batch normalization of 64 pixels.
class NormOfPixels : public Network {
 public:
  explicit NormOfPixels(const Config&)
      : norm_(register_module("norm", torch::nn::BatchNorm1d(64))) {}
  at::Tensor forward(const at::Tensor& images) override {
    return norm_->forward(images.flatten(1) + 1);
  }

 private:
  torch::nn::BatchNorm1d norm_;
};

/// From its sixth step on another process than rank 0 does not do what rank 0 does.
class UnequalRanks : public Iterator {
 public:
  explicit UnequalRanks(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        how_(context.config.get("how", "none")) {
    if (how_ == "by hand") context.train_by_hand();
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor loss = model_->forward(batch["image"]).square().mean();
    const bool differs = context().rank > 0 && global_step() >= 5;
    return {
        .train_op =
            [=, this] {
              const Scalars numbers{{"mean", loss}};
              if (differs && how_ == "no update") return numbers;
              update_.step(loss);
              if (differs && how_ == "two updates") {
                update_.step(model_->forward(batch["image"]).mean());
              }
              if (differs && how_ == "weights") {
                for (const auto& weight : model_->parameters()) weight.detach().mul_(0.5);
              }
              return numbers;
            },
        .log_op =
            [=, this] {
              Logs logs{.scalars = {{"loss", loss}}};
              if (differs && how_ == "log") logs.scalars.set("extra", 1);
              if (differs && how_ == "log throws") throw std::runtime_error("no such curve");
              if (how_ == "log passes") model_->forward(batch["image"]);
              return logs;
            },
        .eval_op =
            [=] {
              return EvalOutputs{.outputs = {{"image", batch["image"]}}};
            },
    };
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  std::string how_;
};

/// Has no log op; with `forgets` a count that no checkpoint holds. The loss of a batch with the
/// example `bad_example` is told as a thousand times as large, and so is each from the step
/// `level_from` on; in a step with more examples than
/// `memory` there is none left.
class QuietIterator : public Iterator {
 public:
  explicit QuietIterator(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        forgets_(context.config.get("forgets", false)),
        bad_example_(context.config.get("bad_example", int64_t{-1})),
        level_from_(context.config.get("level_from", int64_t{1'000'000})),
        memory_(context.config.get("memory", int64_t{1000})) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor loss = model_->forward(batch["image"]).square().mean();
    const bool is_bad = std::ranges::find(batch.indices(), bad_example_) != batch.indices().end() ||
                        global_step() + 1 >= level_from_;
    return {.train_op = [=, this] {
      if (batch.size() > memory_) throw std::bad_alloc();
      update_.step(forgets_ ? loss * ++count_ : loss);
      return Scalars{{"loss", is_bad ? loss.detach() * 1000 : loss.detach()}};
    }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  bool forgets_;
  int64_t bad_example_;
  int64_t level_from_;
  int64_t memory_;
  int64_t count_ = 0;
};

STEPOP_REGISTER_ITERATOR(QuietIterator, {"For tests.",
                                         {{"forgets", "false", "keeps what is not tracked"},
                                          {"bad_example", "-1", "its batch has a large loss"},
                                          {"level_from", "1000000", "a step with larger losses"},
                                          {"memory", "1000", "most examples in a step"}}});
STEPOP_REGISTER_MODEL(NormOfPixels);
STEPOP_REGISTER_ITERATOR(
    UnequalRanks,
    {"For tests.",
     {{"how", "none", "no update, two updates, weights, log, log throws, log passes, by hand"}}});
STEPOP_REGISTER_HOOK(SleepyStep, {"For tests.", {{"milliseconds", "1", "a step with one thread"}}});
STEPOP_REGISTER_DATASET(SlowDataset, {"For tests.",
                                      {{"dataset", "", "the other one"},
                                       {"seconds", "0", "an example"},
                                       {"stuck", "", "a file that makes it minutes"},
                                       {"stuck_from", "0", "from which example on"}}});
STEPOP_REGISTER_DATASET(FailingRank, {"For tests.",
                                      {{"dataset", "", "the other one"},
                                       {"how", "none", "throw, kill, hang or nan"},
                                       {"rank", "1", "in which process"},
                                       {"after", "0", "so many examples"}}});
STEPOP_REGISTER_CALLBACK(slow_callback, slow_callback, {"For tests.", {}});

}  // namespace
}  // namespace stepop
