// Trainings with `cuda_graph: true`: steps that the device launches as graphs, with the same bits.
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

#include "runtime/data/dataset.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/step/device_graph.h"
#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/lenet_config.h"
#include "tests/accelerator/same_training.h"
#include "tests/accelerator/with_device.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop::accelerator {
namespace graph_test {

constexpr int64_t kExamples = 61;  // three epochs of seven whole batches and a smaller one
constexpr const char* kGraph = "\ncuda_graph: true\n";

/// Two networks, of which the second's loss runs through the first after its update.
class TestRivals : public Iterator {
 public:
  explicit TestRivals(const Context& context)
      : Iterator(context),
        generator_(context.network<Network>("generator")),
        judge_(context.network<Network>("judge")),
        generator_update_(context.update("generator_optimizer", {"generator"})),
        judge_update_(context.update("judge_optimizer", {"judge"})) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor real = batch["image"];
    const at::Tensor noise = at::randn({real.size(0), 4}, real.options());
    const at::Tensor fake = generator_->forward(noise);
    return {.train_op =
                [=, this] {
                  const at::Tensor judge_loss = loss_of(judge_->forward(real), true) +
                                                loss_of(judge_->forward(fake.detach()), false);
                  judge_update_.step(judge_loss);
                  const at::Tensor loss = loss_of(judge_->forward(fake), true);
                  generator_update_.step(loss);
                  return Scalars{{"judge", judge_loss}, {"generator", loss}};
                },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"mean", fake.mean()}}};
                }};
  }

 private:
  static at::Tensor loss_of(const at::Tensor& logits, bool is_real) {
    return at::binary_cross_entropy_with_logits(
        logits, is_real ? at::ones_like(logits) : at::zeros_like(logits));
  }

  std::shared_ptr<Network> generator_;
  std::shared_ptr<Network> judge_;
  Update& generator_update_;
  Update& judge_update_;
};
STEPOP_REGISTER_ITERATOR(TestRivals, {"For tests.", {}});

/// Does in a step what `fault` names.
class TestUncaptured : public Iterator {
 public:
  explicit TestUncaptured(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        weight_(context.scheduled("extra_weight", 1)),
        fault_(context.config.get("fault", std::string("none"))) {
    context.track("kept", kept_);
    context.track("count", count_);
    if (fault_ == "by hand") context.train_by_hand();
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor logits = model_->forward(batch["image"]);
    return {.train_op = [=, this]() -> Scalars {
      at::Tensor loss = at::cross_entropy_loss(logits, batch["class"]);
      if (fault_ == "item" && loss.item<float>() > 100) loss = loss * 2;
      if (fault_ == "host random") loss = loss * (1 + at::rand({}).item<double>());
      if (fault_ == "step") loss = loss * (1.0 + static_cast<double>(global_step()));
      if (fault_ == "schedule") loss = loss * weight_.at(context().position.global_step);
      if (fault_ == "count") ++count_;
      if (fault_ == "new tensor") kept_ = loss.detach() * 2;
      if (fault_ == "waiting") {
        update_.backward(loss);
        if (context().position.global_step % 2 == 1) update_.apply();
        return {};
      }
      update_.step(loss);
      if (fault_ == "number") return {{"count", 5}};
      return {{"loss", loss}};
    }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  Scheduled weight_;
  std::string fault_;
  at::Tensor kept_;
  int64_t count_ = 0;
};
STEPOP_REGISTER_ITERATOR(TestUncaptured, {"For tests.", {}});

/// Pictures with names.
class TestNamed : public Dataset {
 public:
  explicit TestNamed(const Config& /*params*/) {}
  int64_t size() const override { return kExamples; }
  Example get(int64_t index, Random& /*random*/) const override {
    return {.tensors = {{"image", at::full({1, 12, 12}, index, at::kFloat)},
                        {"class", at::scalar_tensor(index % 3, at::kLong)}},
            .texts = {{"name", "picture"}}};
  }
};
STEPOP_REGISTER_DATASET(TestNamed, {"For tests.", {}});

/// Examples under one key, and from the middle on under another, of the same shape.
class TestTwoKeys : public Dataset {
 public:
  explicit TestTwoKeys(const Config& /*params*/) {}
  int64_t size() const override { return 64; }
  Example get(int64_t index, Random& /*random*/) const override {
    const at::Tensor image = at::full({1, 12, 12}, 0.01 * static_cast<double>(index), at::kFloat);
    return {.tensors = {{index < size() / 2 ? "image" : "negative", image},
                        {"class", at::scalar_tensor(index % 3, at::kLong)}},
            .texts = {}};
  }
};
STEPOP_REGISTER_DATASET(TestTwoKeys, {"For tests.", {}});

/// Takes what is under each key in its own way.
class TestOfTwoKeys : public Iterator {
 public:
  explicit TestOfTwoKeys(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor logits =
        model_->forward(batch.contains("image") ? batch["image"] : batch["negative"].neg());
    return {.train_op = [=, this]() -> Scalars {
      const at::Tensor loss = at::cross_entropy_loss(logits, batch["class"]);
      update_.step(loss);
      return {{"loss", loss}};
    }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
};
STEPOP_REGISTER_ITERATOR(TestOfTwoKeys, {"For tests.", {}});

std::string rivals_config(const std::string& more, int log_freq = 3) {
  return R"(
iterator: TestRivals
networks:
  generator: {class: MLP, inputs: 4, hidden: [16], classes: 16, dropout: 0.3}
  judge: {class: MLP, inputs: 16, hidden: [600], classes: 1, dropout: 0.2}
generator_optimizer: {class: Adam, lr: {class: cosine, from: 1e-2, to: 1e-4, steps: end}, clip_norm: 1}
judge_optimizer: {class: AdamW, lr: 1e-3}
ema: {decay: 0.9, networks: [generator]}
datasets:
  train: {class: Synthetic, size: 29, shape: [1, 4, 4], classes: 3}
batch_size: 8
num_epochs: 6
num_threads: 1
device: hpu
)" + fmt::format("log_freq: {}\n", log_freq) +
         more;
}

void check_same(const TestRun& here, const TestRun& there) {
  CHECK(different(here, there) == "");
  CHECK(first_difference(logged(here), logged(there)) == "");
}

/// LibTorch has graphs for other devices than CUDA's from 2.13 on.
bool has_graphs() { return make_device_graph(c10::kHPU) != nullptr; }

TEST_CASE("where LibTorch has no graphs for the device, a run is refused before it begins") {
  if (has_graphs()) return;
  CHECK(message_of([] {
          TestRun run(lenet_config(kName, kGraph));
        }).find("cuda_graph: neither this LibTorch nor this build has graphs for hpu") !=
        std::string::npos);
}

TEST_CASE("a training by graphs has the bits of one without, its logs too") {
  if (!has_graphs()) return;
  const auto check = [](const std::string& more, int64_t launches_of_step) {
    CAPTURE(more);
    const std::string config = lenet_config(kName, more, kExamples);
    TestRun there(config);
    there.train();
    take_graph_launches();
    TestRun here(config + kGraph);
    here.train();
    const int64_t launches = take_graph_launches();
    CHECK(launches >= launches_of_step * 12);       // of 21 whole batches
    CHECK(launches <= launches_of_step * 21 + 12);  // more in steps with a log
    check_same(here, there);
  };
  for (const char* more :
       {"", "ema: {decay: 0.9}\nckpt_freq: 5", "swa: {from: 1e}", "channels_last: true",
        "n_data_processes: 2\nn_prefetch: 3", "hooks: {spike: LossSpike}", "precision: bfloat16",
        "precision: float16", "drop_last: true", "freeze: [{match: conv1, until: 6}]",
        "optimizer: {class: SGD, lr: 0.1, momentum: 0.9, clip_norm: 0.1}",
        "optimizer: {class: AdamW, lr: 0.01, clip_value: 0.01}\non_nan: skip",
        "optimizer: {class: Adam, lr: 0.01, amsgrad: true}\non_nan: ignore",
        "telemetry: {weights: 1e}"}) {
    const std::string text = more;
    const bool has_rate = text.find("optimizer:") != std::string::npos;
    check(text + (has_rate ? "" : "\noptimizer: {class: Adam, lr: 0.01}"), 1);
  }
  // These need the host between the gradients and the update.
  for (const char* more :
       {"", "log_freq: 1", "optimizer: {class: SGD, lr: {class: cosine, from: 0.1, steps: end}}",
        "optimizer: {class: RMSprop, lr: 0.01}\non_nan: ignore",
        "optimizer: {class: Adam, lr: 0.01, clear_state_at: [7]}",
        "optimizer: {class: AdamW, weight_decay: {class: cosine, from: 0.1, steps: end}}",
        "optimizer: {class: SGD, lr: 0.1, clip_norm: {class: linear, from: 1, to: 0.1, steps: 9}}",
        "optimizer: {class: Muon, lr: 0.01}", "optimizer: {class: ScheduleFreeAdamW, lr: 0.01}",
        "telemetry: {gradients: 1}"}) {
    check(more, 2);
  }
}

TEST_CASE("steps of two networks with dropout have the same bits, also beside late copies") {
  if (!has_graphs()) return;
  // 15 whole batches and 3 smaller ones after the first three of each kind. The generator's rate is
  // a schedule; a logged step shows the norm of the judge's gradients, too.
  for (const auto& [log_freq, launches_of_step] : {std::pair{1, 3}, std::pair{24, 2}}) {
    CAPTURE(log_freq);
    TestRun there(rivals_config("", log_freq));
    there.train();
    set_copy_delay(2'000);
    take_graph_launches();
    TestRun here(rivals_config(kGraph, log_freq));
    here.train();
    set_copy_delay(0);
    const int64_t launches = take_graph_launches();
    CHECK(launches <= launches_of_step * (15 + 3));
    CHECK(launches >= launches_of_step * (log_freq == 1 ? 15 + 3 : 12));  // less the logged ones
    check_same(here, there);
  }
}

TEST_CASE("batches of equal sizes under other keys have graphs of their own") {
  if (!has_graphs()) return;
  std::string config = lenet_config(
      kName, "eval_hook: null\nsamplers: {train: sequential}\nlog_freq: 1\nlog_ops: []\n");
  config.replace(config.find("Classifier"), 10, "TestOfTwoKeys");
  const size_t begin = config.find("{class: Synthetic");
  config.replace(begin, config.find('}', begin) + 1 - begin, "{class: TestTwoKeys}");
  TestRun there(config);
  there.train();
  take_graph_launches();
  TestRun here(config + kGraph);
  here.train();
  CHECK(take_graph_launches() >= 12);  // of 24 batches, 12 of each kind
  check_same(here, there);
}

TEST_CASE("a training by graphs resumes with the same bits, from and to one without too") {
  if (!has_graphs()) return;
  const std::string plain = rivals_config("ckpt_freq: 5\n");
  TestRun whole(plain + kGraph);
  whole.train();
  const int64_t last = whole.checkpoints().back();
  for (const char* more : {kGraph, ""}) {
    TestRun resumed(plain + more, whole, 10);
    resumed.train();
    CHECK(differences(whole.checkpoint(last), resumed.checkpoint(last)) == "");
  }
}

TEST_CASE("a NaN within a graph ends the training, or leaves the update out, as without") {
  if (!has_graphs()) return;
  const auto config = [](const std::string& more) {
    return lenet_config(
        kName,
        "optimizer: {class: SGD, lr: {class: step, from: 0.1, factor: 1e30, at: [8]}}\n"
        "log_freq: 1\n" +
            more,
        kExamples);
  };
  const auto message = [&](const std::string& more) {
    TestRun run(config(more));
    const std::string text = message_of([&] { run.train(); });
    return text.substr(0, text.find('\n'));  // folders follow
  };
  const std::string plain = message("");
  CHECK(plain.find("the update was not made") != std::string::npos);
  take_graph_launches();
  CHECK(message(kGraph) == plain);
  CHECK(take_graph_launches() > 0);
  TestRun there(config("on_nan: skip"));
  TestRun here(config("on_nan: skip" + std::string(kGraph)));
  there.train();
  here.train();
  check_same(here, there);
}

TEST_CASE("a training by graphs leaves none of the device's memory behind") {
  if (!has_graphs()) return;
  const int64_t before = bytes();
  TestRun(lenet_config(kName, kGraph, kExamples)).train();
  CHECK(bytes() == before);
}

std::string uncaptured_config(const std::string& fault, const std::string& more = "") {
  std::string text =
      lenet_config(kName, "eval_hook: null\nlog_ops: []\nfault: " + fault + "\n" + more + kGraph);
  text.replace(text.find("Classifier"), 10, "TestUncaptured");
  return text;
}

std::string refusal(const std::string& config) {
  return message_of([&] {
    TestRun run(config);
    run.train();
  });
}

TEST_CASE("runs whose steps cannot be captured are refused before they begin") {
  if (!has_graphs()) return;
  const auto build = [](const std::string& device, const std::string& more) {
    return message_of([&] { TestRun run(lenet_config(device, more + kGraph)); });
  };
  CHECK(build("cpu", "").find("cuda_graph: graphs are of a GPU, and the device of this run is the "
                              "CPU; leave cuda_graph out") != std::string::npos);
  CHECK(build(kName, "accumulate: 2").find("accumulate") != std::string::npos);
  CHECK(build(kName, "on_out_of_memory: split").find("on_out_of_memory: split") !=
        std::string::npos);
  CHECK(build(kName, "checkpoint_modules: '.'").find("checkpoint_modules") != std::string::npos);
  CHECK(message_of([] {
          TestRun run(uncaptured_config("by hand"));
        }).find("the network \"model\" is trained without an update of the runtime") !=
        std::string::npos);
  if (!World::can_join()) return;
  const ScratchFolder folder;
  const CommandResult of_two =
      run_in(folder, kWithDevice + "stepop -n a -b '" + kConfig +
                         "' -t --device hpu --processes 2 --cuda_graph true");
  CHECK(of_two.exit_code == 2);
  CHECK(of_two.err ==
        "stepop: command line: cuda_graph: a graph cannot hold the sums of gradients "
        "over several processes; leave cuda_graph out\n");
}

TEST_CASE("a step that a graph cannot repeat is refused with what to do instead") {
  if (!has_graphs()) return;
  CHECK(refusal(uncaptured_config("none")) == "no error");
  for (const auto& [fault, found] : std::map<std::string, std::string>{
           {"item", "item(), copies to and from the host"},
           {"host random", "it draws random numbers of the CPU"},
           {"step", "it uses global_step()"},
           {"schedule", "it uses a schedule"},
           {"count", "it changes \"count.value\" on the host"},
           {"new tensor", "it changes \"kept.value\" by a new tensor"},
           {"waiting", "gradients of optimizer wait for a later step"},
           {"number", "returns \"count\" as a number of the host"}}) {
    CAPTURE(fault);
    const std::string more =
        fault == "schedule" ? "extra_weight: {class: linear, from: 1, to: 0, steps: 9}\n" : "";
    const std::string message = refusal(uncaptured_config(fault, more));
    CAPTURE(message);
    CHECK(message.find(found) != std::string::npos);
    CHECK(message.find("cuda_graph") != std::string::npos);
    CHECK(message.find("leave cuda_graph out") != std::string::npos);
  }
  const std::string metrics =
      refusal(lenet_config(kName, "metrics: {f1: F1}" + std::string(kGraph), kExamples));
  CHECK(metrics.find("it uses the sums of metrics") != std::string::npos);
  std::string named = lenet_config(kName, kGraph);
  const size_t begin = named.find("{class: Synthetic");
  named.replace(begin, named.find('}', begin) + 1 - begin, "{class: TestNamed}");
  const std::string texts = refusal(named);
  CAPTURE(texts);
  CHECK(texts.find("its batches have the texts \"name\", which the host reads: leave them out, as "
                   "the view Select does") != std::string::npos);
}

}  // namespace graph_test
}  // namespace stepop::accelerator
