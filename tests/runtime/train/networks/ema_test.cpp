#include "runtime/train/networks/ema.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include <cmath>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/loop/evaluation.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace ema_test {

State copy(State state) {
  for (auto& [name, tensor] : state) tensor = tensor.detach().clone();
  return state;
}

State without_averages(State state) {
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("ema_"); });
  return state;
}

bool is_buffer(const std::string& name) {
  return name.find("running_") != std::string::npos || name.ends_with("num_batches_tracked");
}

/// Keeps weights and averages after each step; [0] is before the first.
class Record : public Hook {
 public:
  explicit Record(Tracker& tracker) : tracker_(tracker) {}
  void before_step(int64_t) override {
    if (weights.empty()) take();
  }
  void after_step(int64_t) override { take(); }

  std::vector<State> weights, averages;

 private:
  void take() {
    weights.push_back(copy(tracker_.save("model")));
    averages.push_back(copy(tracker_.save("ema_model")));
  }
  Tracker& tracker_;
};

/// The largest distance of the averages in a run of `steps` from a calculation in float64.
template <class Decay>
double distance_from_formula(const std::string& ema, int64_t steps, const Decay& decay) {
  TestRun run(trainer_config("num_steps: " + std::to_string(steps) + "\nema: " + ema));
  Record record(run.session.context().tracker);
  run.train({&record});
  REQUIRE(record.weights.size() == static_cast<size_t>(steps) + 1);
  double largest = 0;
  for (const auto& [name, start] : record.weights[0]) {
    if (is_buffer(name)) continue;
    at::Tensor expected = start.to(at::kDouble);
    for (int64_t step = 0; step < steps; ++step) {
      const auto after = static_cast<size_t>(step + 1);
      const at::Tensor weight = record.weights[after].at(name).to(at::kDouble);
      expected = expected * decay(step) + weight * (1 - decay(step));
      const at::Tensor distance = (record.averages[after].at(name) - expected).abs().max();
      largest = std::max(largest, distance.item<double>());
    }
  }
  return largest;
}

TEST_CASE("averages are those of the formula") {
  CHECK(distance_from_formula("{decay: 0.7}", 5, [](int64_t) { return 0.7; }) < 1e-6);
  CHECK(distance_from_formula("{}", 5, [](int64_t) { return 0.999; }) < 1e-6);
  CHECK(distance_from_formula("{decay: {class: linear, from: 0.2, to: 0.9, steps: 4}}", 6,
                              [](int64_t step) {
                                return step < 4 ? 0.2 + 0.7 * static_cast<double>(step) / 4 : 0.9;
                              }) < 1e-6);
  CHECK(distance_from_formula("{decay: 0.25, warmup: true}", 6, [](int64_t step) {
          return std::min(0.25,
                          (1.0 + static_cast<double>(step)) / (10.0 + static_cast<double>(step)));
        }) < 1e-6);
}

TEST_CASE("averages on the CPU move in every tenth step by the product of ten decays") {
  const auto network = std::make_shared<torch::nn::Module>();
  const at::Tensor weight = network->register_parameter("weight", at::zeros({1}, at::kDouble));
  const Config config(
      parse_yaml("ema: {decay: 0.9, warmup: true, on_cpu: true}", {"test.yaml", 0}));
  Ema ema(config.at("ema"), false);
  ema.add("model", network);
  ema.start();
  double expected = 0;
  double decay = 1;
  for (int64_t step = 0; step < 29; ++step) {
    const at::NoGradGuard no_grad;
    weight.fill_(static_cast<double>(step * step));
    ema.update(step);
    decay *= std::min(0.9, (1.0 + static_cast<double>(step)) / (10.0 + static_cast<double>(step)));
    if (step % 10 == 9) {
      expected = decay * expected + (1 - decay) * static_cast<double>(step * step);
      decay = 1;
    }
    CHECK(ema.state("model").at("weight").item<double>() ==
          doctest::Approx(expected).epsilon(1e-12));
  }
  CHECK_FALSE(ema.averages_within(9));
  CHECK(ema.averages_within(10));
}

TEST_CASE("with a decay by a power law each average is that of ema_pytorch") {
  const SafetensorsFile file =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/optim/averages.safetensors");
  const at::Tensor& weights = file.tensors.at("weights");
  REQUIRE(file.metadata.size() == 12);
  for (const auto& [name, decay] : file.metadata) {
    const auto network = std::make_shared<torch::nn::Module>();
    const at::Tensor weight = network->register_parameter("weight", weights[0].clone());
    const Config config(parse_yaml("ema: {decay: " + decay + "}", {"test.yaml", 0}));
    Ema ema(config.at("ema"), false);
    ema.add("model", network);
    ema.start();
    for (int64_t step = 0; step < weights.size(0); ++step) {
      INFO(name, " after update ", step);
      const at::NoGradGuard no_grad;
      weight.copy_(weights[step]);
      ema.update(step);
      const at::Tensor average = ema.state("model").at("weight");
      CHECK((average - file.tensors.at(name)[step]).abs().max().item<double>() < 1e-6);
    }
  }
}

TEST_CASE("averages have the network's names, and its buffers as they are") {
  TestRun run(trainer_config("num_steps: 5\nema: {decay: 0.9}"));
  run.train();
  const State state = run.checkpoint(5);
  int parameters = 0;
  int buffers = 0;
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with("model.")) continue;
    CAPTURE(name);
    REQUIRE(state.contains("ema_" + name));
    const bool is_same = tensor.equal(state.at("ema_" + name));
    CHECK(is_same == is_buffer(name));
    ++(is_buffer(name) ? buffers : parameters);
  }
  CHECK(parameters == 6);
  CHECK(buffers == 3);
}

TEST_CASE("averages and their evaluations never change the training") {
  const auto trained = [](const std::string& more) {
    TestRun run(trainer_config("num_steps: 9\n" + more));
    run.train();
    return without_averages(run.checkpoint(9));
  };
  const State plain = trained("");
  CHECK(differences(trained("ema: {decay: 0.9}"), plain) == "");
  CHECK(differences(trained("ema: {decay: 0.9}\neval_weights: ema\neval_hook: {freq: {every: 1, "
                            "at_start: true}}"),
                    plain) == "");
}

TEST_CASE("an evaluation of the averages is one of a network with these weights") {
  TestRun run(trainer_config("num_steps: 6\nema: {decay: 0.8}\neval_weights: ema"));
  run.train();
  const double with_averages = run.metrics().back()["validation/eval_op/loss"];

  const auto evaluated = [&](bool with_the_averages) {
    TestRun other(trainer_config("num_steps: 6"));
    State weights;
    for (const auto& [name, tensor] : run.checkpoint(6)) {
      const std::string prefix = with_the_averages ? "ema_model." : "model.";
      if (name.starts_with(prefix)) weights["model." + name.substr(prefix.size())] = tensor;
    }
    Session& session = other.session;
    session.context().tracker.load("model", weights);
    session.position().global_step = 6;
    return Evaluation(session.settings().evaluations.at(0), session.iterator(), session.context(),
                      "none")
        .run(session.position(), other.root() + "/eval", [](int64_t, int64_t) {})
        .scalars.at("validation/eval_op/loss");
  };
  CHECK(evaluated(true) == doctest::Approx(with_averages).epsilon(1e-12));
  CHECK(std::abs(evaluated(false) - with_averages) > 1e-6);
}

TEST_CASE("a resumed run ends with the averages of one that was never stopped") {
  const std::string ema = "\nema: {decay: 0.9, warmup: true}\neval_weights: ema";
  TestRun whole(trainer_config("num_steps: 11" + ema));
  whole.train();
  for (const int64_t stop : {1, 4, 6}) {
    CAPTURE(stop);
    TestRun before(trainer_config("num_steps: " + std::to_string(stop) + ema));
    before.train();
    TestRun after(trainer_config("num_steps: 11" + ema), before, stop);
    after.train();
    CHECK(differences(after.checkpoint(11), whole.checkpoint(11)) == "");
  }
}

/// The classifier of `trainer_config`, trained by ScheduleFreeAdamW.
std::string schedule_free_config(const std::string& more) {
  std::string config = trainer_config(more);
  const size_t begin = config.find("optimizer:");
  return config.replace(begin, config.find('\n', begin) - begin,
                        "optimizer: {class: ScheduleFreeAdamW, lr: 1e-2}");
}

TEST_CASE("the averages of ScheduleFreeAdamW are evaluated and saved") {
  TestRun run(schedule_free_config("num_steps: 6"));
  run.train();
  const State state = run.checkpoint(6);
  const double beta1 = 0.9;
  for (const auto& [name, weights] : state) {
    if (!name.starts_with("model.") || is_buffer(name)) continue;
    CAPTURE(name);
    const at::Tensor z = state.at("optimizer." + name.substr(6) + ".z");
    const at::Tensor expected = weights + (1 - 1 / beta1) * (z - weights);
    CHECK((state.at("ema_" + name) - expected).abs().max().item<double>() < 1e-6);
    CHECK((weights - expected).abs().max().item<double>() > 1e-5);
  }
  const Context& context = run.session.context();
  const AveragesGuard guard = context.networks.evaluation_weights();
  CHECK(at::equal(context.tracker.save("model").at("last.weight").cpu(),
                  state.at("ema_model.last.weight")));
}

TEST_CASE("a resumed run of ScheduleFreeAdamW has the bits of one that was never stopped") {
  TestRun whole(schedule_free_config("num_steps: 11"));
  whole.train();
  for (const int64_t stop : {1, 6}) {
    CAPTURE(stop);
    TestRun before(schedule_free_config("num_steps: " + std::to_string(stop)));
    before.train();
    TestRun after(schedule_free_config("num_steps: 11"), before, stop);
    after.train();
    CHECK(differences(after.checkpoint(11), whole.checkpoint(11)) == "");
  }
}

TEST_CASE("evaluations never change a training of ScheduleFreeAdamW, nor with which weights") {
  const auto trained = [](const std::string& more) {
    TestRun run(schedule_free_config("num_steps: 9\n" + more));
    run.train();
    return std::pair(run.checkpoint(9), run.metrics().back()["validation/eval_op/loss"]);
  };
  const auto [plain, loss] = trained("");
  CHECK(differences(trained("eval_hook: {freq: {every: 1, at_start: true}}").first, plain) == "");
  const auto [same, loss_of_weights] = trained("eval_weights: model");
  CHECK(differences(same, plain) == "");
  CHECK(loss_of_weights != loss);
}

TEST_CASE("averages beside those of an optimizer are refused") {
  CHECK(message_of([] {
          TestRun(schedule_free_config("num_steps: 1\nema: {decay: 0.9}"));
        }).ends_with("ema: the optimizer has averages of its own: leave ema out"));
}

TEST_CASE("averages that a resume adds begin with the weights of the checkpoint") {
  TestRun before(trainer_config("num_steps: 4"));
  before.train();
  TestRun after(trainer_config("num_steps: 5\nema: {decay: 0.75}"), before, 4);
  after.train();
  const State old = before.checkpoint(4);
  const State state = after.checkpoint(5);
  for (const auto& [name, tensor] : old) {
    if (!name.starts_with("model.") || is_buffer(name)) continue;
    const at::Tensor expected = tensor + 0.25 * (state.at(name) - tensor);
    CHECK((state.at("ema_" + name) - expected).abs().max().item<double>() < 1e-7);
  }
}

TEST_CASE("weights taken from elsewhere are what averages begin with") {
  TestRun before(trainer_config("num_steps: 4"));
  before.train();
  TestRun again(trainer_config("num_steps: 1\nckpt_zero: true\nema: {decay: 0.75}"));
  again.session.check();
  again.session.restore_weights({before.checkpoint(4), {}, {}}, "somewhere");
  again.train();
  const State start = again.checkpoint(0);
  for (const auto& [name, tensor] : before.checkpoint(4)) {
    if (name.starts_with("model.")) CHECK(tensor.equal(start.at("ema_" + name)));
  }
}

TEST_CASE("averages that a checkpoint lacks cannot be evaluated") {
  TestRun before(trainer_config("num_steps: 1"));
  before.train();
  const Checkpoint checkpoint{before.checkpoint(1), {}, {}};
  const auto message = [&](const std::string& more) {
    Session session(test_config(trainer_config("num_steps: 1\n" + more)), /*train=*/false, false,
                    false);
    return message_of([&] { session.restore_for_evaluation(checkpoint, "model-1"); });
  };
  CHECK(message("ema: {decay: 0.9}\neval_weights: ema") ==
        "model-1: no averages of the network \"model\": the checkpoint was saved without ema. Use "
        "eval_weights: model");
  CHECK(message("ema: {decay: 0.9}") == "no error");
}

TEST_CASE("averages of another architecture are refused with what differs") {
  TestRun run(trainer_config("num_steps: 1\nema: {decay: 0.9}"));
  run.train();
  State state = run.checkpoint(1);
  state["ema_model.last.bias"] = at::zeros({4});
  state.erase("ema_model.norm.bias");
  const Tracker& tracker = run.session.context().tracker;
  const State before = copy(tracker.save());
  CHECK(message_of([&] { tracker.load("ema_model", state); }) ==
        "the checkpoint has another architecture than the network \"ema_model\":\n"
        "  ema_model.last.bias: [4] in the checkpoint, [3] in the network\n"
        "  ema_model.norm.bias: missing from the checkpoint\n"
        "Give the config that it was trained with; or start a new run with the weights that fit: "
        "init_from with strict: false");
  CHECK(differences(tracker.save(), before) == "");
}

TEST_CASE("the weights come back, also when an evaluation throws") {
  TestRun run(trainer_config("num_steps: 3\nema: {decay: 0.9}\neval_weights: ema"));
  run.train();
  const Context& context = run.session.context();
  const State before = copy(context.tracker.save("model"));
  const State averages = copy(context.tracker.save("ema_model"));
  const at::Tensor weight = context.tracker.save("model").at("last.weight");
  const void* memory = weight.const_data_ptr();
  const auto version = weight.unsafeGetTensorImpl()->version_counter().current_version();
  const at::Tensor loss = (weight * weight).sum();  // needs the weight as it is
  try {
    const AveragesGuard guard = context.networks.evaluation_weights();
    CHECK(differences(context.tracker.save("model"), averages) == "");
    CHECK(weight.const_data_ptr() != memory);
    CHECK(weight.equal(averages.at("last.weight")));
    throw Error("an evaluation failed");
  } catch (const Error&) {
  }
  CHECK(differences(context.tracker.save("model"), before) == "");
  CHECK(weight.const_data_ptr() == memory);
  CHECK(weight.requires_grad());
  CHECK(weight.unsafeGetTensorImpl()->version_counter().current_version() == version + 2);
  CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("modified by an inplace operation"),
                       std::exception);
}

TEST_CASE("weights of 16 bits have averages of 32, tied ones a common one") {
  class Tied : public torch::nn::Module {
   public:
    Tied() {
      at::Tensor weight = register_parameter("first", at::zeros({2}, at::kBFloat16));
      register_parameter("second", weight);
    }
  };
  const auto network = std::make_shared<Tied>();
  at::Tensor weight = network->named_parameters()["first"];
  Ema ema(test_config("ema: {decay: 0.999}").at("ema"), false);
  ema.add("tied", network);
  ema.start();
  weight.detach().fill_(1);
  for (int64_t step = 0; step < 10; ++step) ema.update(step);
  const State state = ema.state("tied");
  const at::Tensor average = state.at("first");
  CHECK((average.scalar_type() == at::kFloat));
  CHECK(average[0].item<double>() == doctest::Approx(1 - std::pow(0.999, 10)).epsilon(1e-5));
  CHECK(state.at("second").is_same(average));
  {
    const AveragesGuard guard(&ema);
    CHECK((weight.scalar_type() == at::kBFloat16));
    CHECK(weight[0].item<double>() == doctest::Approx(0.00995).epsilon(0.01));
  }
  CHECK(weight[0].item<double>() == 1);
}

TEST_CASE("a network without parameters has averages without any, integers are no average") {
  const auto with = [](const at::Tensor& parameter) {
    const auto network = std::make_shared<torch::nn::Module>();
    if (parameter.defined()) network->register_parameter("counts", parameter, false);
    Ema ema(test_config("ema: {decay: 0.5}").at("ema"), false);
    ema.add("fixed", network);
    ema.start();
    ema.update(0);
    const AveragesGuard guard(&ema);
    return ema.state("fixed");
  };
  CHECK(with({}).empty());
  const at::Tensor counts = at::full({2}, 3, at::kLong);
  CHECK(with(counts).at("counts").equal(counts));
}

TEST_CASE("by default the networks that are trained are averaged, else those that are named") {
  const auto tracked = [](const std::string& ema) {
    const Config config = test_config(
        "networks: {student: {class: MLP, inputs: 2, hidden: [2], classes: 2}, teacher: {class: "
        "MLP, "
        "inputs: 2, hidden: [2], classes: 2}}\noptimizer: SGD\nema: " +
        ema);
    Tracker tracker;
    Networks networks(config, c10::kCPU, tracker);
    const StepClock clock;
    Networks::Updates updates;
    updates.set("optimizer", std::make_unique<Update>(config.at("optimizer"),
                                                      networks.parameters({"student"}), clock));
    networks.add_averages(config, updates, tracker, true);
    std::string names;
    for (const auto& name : tracker.names()) names += name + " ";
    return names;
  };
  CHECK(tracked("{decay: 0.9}") == "student teacher ema_student ");
  CHECK(tracked("{networks: [teacher, student]}") == "student teacher ema_teacher ema_student ");
  CHECK(message_of([&] { tracked("{networks: [student, techer]}"); }) ==
        "test.yaml:3: ema/networks/1: no network \"techer\"; there are: student, teacher");
}

TEST_CASE("what cannot be averaged or evaluated is refused with its place") {
  const auto message = [](const std::string& more) {
    return message_of([&] { TestRun(trainer_config("num_steps: 1\n" + more)); });
  };
  CHECK(message("eval_weights: ema") ==
        "test.yaml:13: eval_weights: there are no averages: add ema: {decay: 0.999}");
  CHECK(message("eval_weights: best") ==
        "test.yaml:13: eval_weights: expected model, ema or swa, found \"best\"");
  CHECK(message("ema: 0.999") ==
        "test.yaml:13: ema: expected a map such as {decay: 0.999}, found 0.999");
  CHECK(message("ema: {decay: 1}") ==
        "test.yaml:13: ema/decay: expected a number below 1, found 1");
  CHECK(message("ema: {decay: -1}").starts_with("test.yaml:13: ema/decay: "));
  CHECK(message("ema: {networks: []}") ==
        "test.yaml:13: ema: no network is trained that could be averaged");
  CHECK(message("ema: {decy: 0.9}").find("did you mean \"ema/decay\"?") != std::string::npos);
}

}  // namespace ema_test
}  // namespace stepop
