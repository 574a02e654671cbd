#include "iterators/losses/loss_manager.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "iterators/losses/image_losses.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/tensor_values.h"
#include "tests/test_run.h"

namespace stepop::losses {
namespace loss_manager_test {

at::Tensor square(const std::vector<at::Tensor>& inputs) { return inputs.at(0).square(); }

LossSpecs known() {
  return {{"color_L1", {of_two(l1), {"color"}}}, {"KL", {square, {"color", "other"}}}};
}

constexpr const char* kRun = R"(
model: {class: MLP, inputs: 3, hidden: [4], classes: 1}
optimizer: {class: SGD, lr: 0.01}
datasets: {train: {class: RandomTensors, size: 8, tensors: {x: [3]}}}
batch_size: 4
num_threads: 1
log_freq: 1
seed: 1
)";

/// Losses of a config, before the first step.
struct Bench {
  explicit Bench(const std::string& config, const LossSpecs& specs = known(), int64_t history = 4)
      : run(fmt::format("iterator: test_losses\ndevice: cpu\nlosses: {}\nown: none{}num_steps: 1\n",
                        config, kRun)),
        losses(run.session.context(), "losses", specs, history) {}

  TestRun run;
  LossManager losses;
};

/// Trains with the losses that the config names, on a network's output: `small`, its square, and
/// `far`, the distance from 1.
class TestLosses : public Iterator {
 public:
  explicit TestLosses(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {
    context.config.get<Value>("losses");
    if (context.config.get("own", "losses") == "none") return;
    losses_ = std::make_unique<LossManager>(
        context, "losses",
        LossSpecs{{"small", {square, {"all"}}}, {"far", {of_two(l1), {"all"}, 0.5}}}, 3);
  }

  StepOps step_op(const Batch& batch) override {
    return {.train_op =
                [=, this] {
                  const at::Tensor made = model_->forward(batch["x"]);
                  (*losses_)("small", made);
                  (*losses_)("far", made, at::full({4, 1}, 1.0));
                  const at::Tensor total = losses_->total("all");
                  Scalars scalars = losses_->take_scalars();
                  scalars.set("total", total.detach());
                  update_.step(total);
                  return scalars;
                },
            .log_op = [] { return Logs{}; }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  std::unique_ptr<LossManager> losses_;
};
STEPOP_REGISTER(iterators(), "test_losses",
                [](const Config&, const Context& context) -> std::unique_ptr<Iterator> {
                  return std::make_unique<TestLosses>(context);
                },
                {"For tests.", {{"losses/<name>", "", ""}, {"own", "", ""}}});

TEST_CASE("a loss is its mean times its weight, and its record the mean itself") {
  Bench bench("{color_L1: {weight: 10}}");
  const at::Tensor a = at::tensor({1., 2., 3., 5.}).reshape({2, 2});
  const at::Tensor b = at::ones({2, 2}, at::kDouble);
  CHECK(bench.losses("color_L1", a, b).item<double>() == doctest::Approx(10 * 1.75));
  CHECK(bench.losses.latest("color_L1") == 1.75);
  CHECK(
      (values_of<double>(bench.losses.values("color_L1", {a, b})) == std::vector<double>{0.5, 3}));
  CHECK(bench.losses.total("color").item<double>() == doctest::Approx(17.5));
  const Scalars scalars = bench.losses.take_scalars();
  CHECK(scalars.size() == 1);  // not the weight, which stays the same
  CHECK(scalars.at("color_L1").read("") == 1.75);
  CHECK(message_of([&] { bench.losses.total("color"); }) ==
        "the total of \"color\": none of its losses was computed in this step: color_L1");
}

TEST_CASE("a map is kept as it was computed, without a graph") {
  Bench bench("{KL: {weight: 1}}");
  const at::Tensor x = at::tensor({1., 2., 3., 4.}).reshape({2, 2}).requires_grad_();
  bench.losses("KL", x);
  CHECK((values_of<double>(bench.losses.map("KL").flatten()) == std::vector<double>{1, 4, 9, 16}));
  CHECK_FALSE(bench.losses.map("KL").requires_grad());
  CHECK(bench.losses.latest("KL") == 7.5);
}

TEST_CASE("tags choose losses; names come in the order of the specs") {
  Bench bench(
      "{KL: {weight: 1}, color_L1: {weight: 1}, mine: {loss: l2, weight: 2, tags: [other]}}");
  CHECK((bench.losses.names() == std::vector<std::string>{"color_L1", "KL", "mine"}));
  CHECK((bench.losses.names("other") == std::vector<std::string>{"KL", "mine"}));
  CHECK(bench.losses.latest_of("other").empty());
  bench.losses("mine", at::full({1, 1}, 3.0), at::ones({1, 1}));
  CHECK(bench.losses.latest_of("other").at("mine") == 4);
  CHECK(bench.losses.total("other").item<double>() == 8);
}

TEST_CASE("of each loss the newest values are kept") {
  Bench bench("{KL: {weight: 3}}");
  CHECK_FALSE(bench.losses.latest("KL").has_value());
  CHECK_FALSE(bench.losses.mean("KL", 2).has_value());
  for (int i = 1; i <= 6; ++i) bench.losses("KL", at::full({2}, static_cast<double>(i)));
  CHECK((bench.losses.history("KL") == std::vector<double>{9, 16, 25, 36}));
  CHECK(bench.losses.mean("KL", 2) == 30.5);
  CHECK(bench.losses.mean("KL", 100) == 21.5);
}

TEST_CASE("ten thousand records take no more memory than the first thousand") {
  Bench bench("{KL: {weight: 3}}", known(), 1000);
  const TensorMemory memory;
  const at::Tensor x = at::ones({2});
  const auto record = [&](int count) {
    for (int i = 0; i < count; ++i) {
      bench.losses("KL", x);
      bench.losses.take_scalars();
    }
    return memory.now(c10::kCPU);
  };
  const int64_t after_thousand = record(1000);
  CHECK(record(9000) == after_thousand);
  CHECK(after_thousand >= 8000);
  CHECK(bench.losses.history("KL").size() == 1000);
}

// A tensor on the device `meta` has no values: reading one throws, as it would wait for a GPU.
TEST_CASE("computing and recording a loss reads no value, and neither does its log") {
  Bench bench("{KL: {weight: 10}}");
  const at::Tensor a = at::ones({2, 3}, at::TensorOptions(c10::kMeta));
  bench.losses("KL", a);
  CHECK((bench.losses.total("color").device() == c10::kMeta));
  const Scalars scalars = bench.losses.take_scalars();
  REQUIRE(scalars.at("KL").tensor() != nullptr);
  CHECK((scalars.at("KL").tensor()->device() == c10::kMeta));
  CHECK_THROWS_AS(bench.losses.latest("KL"), c10::Error);
}

LossSpecs own_spec(const Context& /*context*/) { return {{"mine", {of_two(l2), {"G"}, 4}}}; }
STEPOP_REGISTER_LOSS_SPEC("test_spec", own_spec, {"For tests.", {}});

TEST_CASE("a config names a set of losses, one of the user's own among them") {
  TestRun run(
      fmt::format("iterator: test_losses\ndevice: cpu\nlosses: {{small: {{weight: 1}}}}\n{}"
                  "num_steps: 1\nextra: {{spec: test_spec, other: tset_spec}}\n",
                  kRun));
  const Context& context = run.session.context();
  CHECK(named_loss_specs(context, "extra/spec", "basic").at("mine").weight == 4);
  CHECK(named_loss_specs(context, "extra/none", "test_spec").contains("mine"));
  CHECK(message_of([&] {
          named_loss_specs(context, "extra/other", "basic");
        }).find("extra/other: unknown loss spec \"tset_spec\": did you mean \"test_spec\"?") !=
        std::string::npos);
}

TEST_CASE("a loss with a weight of its own is on without the config, which may change it") {
  const LossSpecs specs = {{"a", {square, {}, 2}}, {"b", {square, {}, 0}}, {"c", {square}}};
  Bench bench("{b: {weight: 5}}", specs);
  CHECK((bench.losses.names() == std::vector<std::string>{"a", "b"}));
  CHECK(bench.losses.weight("a") == 2);
  CHECK(bench.losses.weight("b") == 5);
  CHECK_FALSE(bench.losses.has("c"));
  CHECK(Bench("{}", specs).losses.is_only_watched("b"));
}

TEST_CASE("a loss of the weight 0 is watched only, one that begins with 0 is trained") {
  Bench bench(
      "{color_L1: {weight: 0.0}, KL: {start_ramp_it: 2, start_ramp_val: 0, end_ramp_it: 3, "
      "end_ramp_val: 1}}");
  CHECK(bench.losses.is_only_watched("color_L1"));
  CHECK_FALSE(bench.losses.is_only_watched("KL"));
  const at::Tensor x = at::ones({2, 2}).requires_grad_();
  CHECK_FALSE(bench.losses("color_L1", x, 2 * x).requires_grad());
  CHECK(bench.losses("KL", x).requires_grad());
}

TEST_CASE("values of each example are summed by their weights") {
  Bench bench("{color_L1: {weight: 2}, KL: {weight: 1}}");
  const OrderedMap<at::Tensor> values{{"color_L1", at::tensor({1., 2.})},
                                      {"KL", at::tensor({10., 20.})},
                                      {"off", at::tensor({7., 7.})}};
  CHECK((values_of<double>(bench.losses.weighted_sum(values)) == std::vector<double>{12, 24}));
  CHECK(message_of([&] { bench.losses.weighted_sum({}); }) ==
        "no loss to add up: switched on are color_L1, KL, given were none");
}

constexpr const char* kTrained =
    "iterator: test_losses\ndevice: cpu\n"
    "losses: {small: {start_ramp_it: 1, start_ramp_val: 1, end_ramp_it: 3, end_ramp_val: 3}}\n";

TEST_CASE("weights follow their schedules, and are logged where they change") {
  TestRun run(std::string(kTrained) + kRun + "num_steps: 5\n");
  run.train();
  const auto lines = run.metrics();
  const std::vector<double> weights = {1, 1, 2, 3, 3};
  size_t step = 0;
  for (const auto& line : lines) {
    if (!line.contains("train/train_op/total")) continue;
    REQUIRE(step < weights.size());
    CAPTURE(step);
    const auto at = [&](const char* name) {
      return line.at(std::string("train/train_op/") + name).get<double>();
    };
    CHECK(at("weight/small") == weights[step]);
    CHECK_FALSE(line.contains("train/train_op/weight/far"));
    CHECK(at("total") == doctest::Approx(weights[step] * at("small") + 0.5 * at("far")));
    ++step;
  }
  CHECK(step == weights.size());
}

TEST_CASE("what was recorded is in checkpoints, and a run that resumes ends with the same bits") {
  const std::string text = std::string(kTrained) + kRun + "num_steps: 8\nckpt_freq: 5\n";
  TestRun whole(text);
  whole.train();
  TestRun rest(text, whole, 5);
  rest.train();
  CHECK(differences(rest.session.checkpoint().tensors, whole.session.checkpoint().tensors) == "");
  CHECK(whole.checkpoint(8).at("losses.small").numel() == 3);
  CHECK(whole.checkpoint(8).at("losses.small.recorded").item<int64_t>() == 8);
}

TEST_CASE("a loss that no op computes is warned of once, with the tags of those that are") {
  const auto log_of = [](const std::string& more) {
    TestRun run("iterator: test_losses\ndevice: cpu\nlosses: {small: {weight: 1}" + more + "}\n" +
                kRun + "num_steps: 9\n");
    const std::string file = run.root() + "/said.txt";
    run.train({}, file);
    return read_bytes(file);
  };
  const std::string words =
      "loss \"mine\": no op has computed it so far, so that it is neither trained nor logged; the "
      "losses that are have the tags all: tags: [all]\n";
  const std::string said = log_of(", mine: {loss: l2, weight: 3}");
  CHECK(said.find(words) != std::string::npos);
  CHECK(said.find(words) == said.rfind(words));
  CHECK(log_of("").find("no op has computed it") == std::string::npos);
}

TEST_CASE("mistakes in losses are told with their place") {
  const auto refused = [](const std::string& config) {
    return message_of([&] { Bench bench(config); });
  };
  CHECK(refused("{color_l1: {weight: 1}}") ==
        "test.yaml:3: losses/color_l1: there is no such loss; there are: color_L1, KL; one of your "
        "own says which function it is: {loss: l1, weight: 1}");
  CHECK(refused("{KL: 2}") ==
        "test.yaml:3: losses/KL: expected {weight: 1}, or a ramp {start_ramp_it: 2000, "
        "start_ramp_val: 0, end_ramp_it: 3500, end_ramp_val: 1}, found 2");
  CHECK(refused("{KL: {}}").starts_with("test.yaml:3: losses/KL: expected {weight: 1}"));
  CHECK(refused("{KL: {weight: heavy}}").find("losses/KL/weight") != std::string::npos);
  CHECK(refused("{}") == "test.yaml:3: losses: expected at least one loss of: color_L1, KL");
  CHECK(refused("{KL: {start_ramp_it: 2, start_ramp_val: 0, end_ramp_val: 1, end_ramp_it: 2}}") ==
        "test.yaml:3: losses/KL/end_ramp_it: expected a step after start_ramp_it, 2, found 2");
  CHECK(refused("{KL: {start_ramp_it: 2, start_ramp_val: 0, end_ramp_it: 4}}")
            .find("losses/KL/end_ramp_val") != std::string::npos);
  CHECK(refused("{KL: {weight: 1, start_ramp_it: 2}}") ==
        "test.yaml:3: losses/KL/weight: the weight has a ramp, too: remove either; "
        "`start_ramp_it: !remove` in a later file takes the ramp away");
  CHECK(refused("{mine: {loss: l3, weight: 1}}")
            .find("losses/mine/loss: unknown loss function \"l3\"") != std::string::npos);
  CHECK(refused("{KL: {loss: l1, weight: 1}}") ==
        "test.yaml:3: losses/KL/loss: \"KL\" has a function; give the loss another name");
  Bench bench("{color_L1: {weight: 1}}");
  CHECK(message_of([&] { bench.losses("L1", at::ones({1})); }) ==
        "no loss \"L1\"; on are: color_L1");
  CHECK(message_of([&] { bench.losses("color_L1", at::ones({1})); }) ==
        "loss \"color_L1\": expected two tensors, found 1");
}

}  // namespace loss_manager_test
}  // namespace stepop::losses
