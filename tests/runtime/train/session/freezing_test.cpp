#include "runtime/train/session/freezing.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace freezing_test {

/// Epochs of 4 steps, a checkpoint after each of 8 steps.
std::string config_of(const std::string& freeze) {
  return trainer_config("num_steps: 8\nckpt_freq: 1\nckpt_zero: true\neval_hook: null\nfreeze: " +
                        freeze);
}

bool is_same(const TestRun& run, const std::string& name, int64_t a, int64_t b) {
  return at::equal(run.checkpoint(a).at(name), run.checkpoint(b).at(name));
}

TEST_CASE("parameters that are frozen stay, with their averages in the optimizer, and then move") {
  TestRun run(
      config_of("[{match: \"model\\\\.first\", until: 3}, "
                "{match: last.bias, from: 1e}, {match: norm, from: 2, until: 1.5e}]"));
  run.train();
  CHECK(is_same(run, "model.first.weight", 0, 3));
  CHECK(run.checkpoint(3).at("optimizer.first.weight.step").item<float>() == 0);
  CHECK_FALSE(is_same(run, "model.first.weight", 3, 4));
  CHECK(run.checkpoint(8).at("optimizer.first.weight.step").item<float>() == 5);
  CHECK_FALSE(is_same(run, "model.last.bias", 3, 4));
  CHECK(is_same(run, "model.last.bias", 4, 8));
  CHECK_FALSE(is_same(run, "model.norm.weight", 1, 2));
  CHECK(is_same(run, "model.norm.weight", 2, 6));
  CHECK_FALSE(is_same(run, "model.norm.weight", 6, 7));
  CHECK_FALSE(is_same(run, "model.last.weight", 0, 1));
}

TEST_CASE("a resume freezes what the step says") {
  const std::string config = config_of("[{match: first, until: 3}, {match: last, from: 6}]");
  TestRun whole(config);
  whole.train();
  const State end = whole.checkpoint(8);
  for (const int64_t step : {2, 3, 5, 7}) {
    CAPTURE(step);
    TestRun again(config, whole, step);
    again.train();
    CHECK(differences(again.checkpoint(8), end) == "");
  }
}

TEST_CASE("a rule that cannot be is refused with its place") {
  const auto error = [](const std::string& freeze) {
    return message_of([&] { TestRun(config_of(freeze)); });
  };
  CHECK(error("first").ends_with(
      "freeze: expected a list of {match: REGEX, until: 5e}, found \"first\""));
  CHECK(error("[first]").ends_with(
      "freeze/0: expected a map such as {match: first}, found \"first\""));
  CHECK(error("[{match: second}]")
            .find("freeze/0/match: \"second\" matches no parameter; the "
                  "parameters are: model.first.weight, model.first.bias, ") != std::string::npos);
  CHECK(
      error("[{match: first, until: 2m}]")
          .ends_with(
              "expected steps (100) or epochs (2e), found minutes: a resume could not know them"));
  CHECK(error("[{match: first, until: 1e30}]")
            .ends_with("freeze/0/until: expected a number that can be reached, found 1.0e+30"));
  CHECK(error("[{match: first, from: 5, until: 5}]")
            .ends_with("freeze/0/until: expected more than from, which is step 5, found 5"));
  CHECK(error("[{match: \"(\"}]").find("freeze/0/match: \"(\" is not a regular expression: ") !=
        std::string::npos);
}

TEST_CASE("a rule may name a parameter without its network") {
  TestRun run(config_of("[{match: ^first}]"));
  run.train();
  CHECK(is_same(run, "model.first.weight", 0, 8));
  CHECK_FALSE(is_same(run, "model.last.weight", 0, 8));
}

/// One tensor under two names, as a language model ties its embedding and its last layer.
class TestTiedWeights : public Network {
 public:
  explicit TestTiedWeights(const Config& /*params*/)
      : weight_(register_parameter("a", at::arange(27, at::kFloat).sin().reshape({9, 3}))) {
    register_parameter("b", weight_);
    bias_ = register_parameter("bias", at::zeros({3}));
  }
  at::Tensor forward(const at::Tensor& x) override { return x.flatten(1).matmul(weight_) + bias_; }

 private:
  at::Tensor weight_, bias_;
};
STEPOP_REGISTER_MODEL(TestTiedWeights, {"For tests.", {}});

std::string tied_config(const std::string& more) {
  std::string yaml = trainer_config("num_steps: 2\nckpt_freq: 1\nckpt_zero: true\n" + more);
  const std::string model = "{class: TestDropoutNet, inputs: 9}";
  return yaml.replace(yaml.find(model), model.size(), "TestTiedWeights");
}

TEST_CASE("a tied weight is frozen by each of its names") {
  for (const char* name : {"^model\\.a$", "^model\\.b$", "^a$", "^b$", "[ab]$"}) {
    CAPTURE(name);
    TestRun run(tied_config(fmt::format("freeze: [{{match: '{}'}}]", name)));
    CHECK(run.session.freezing().descriptions() ==
          std::vector<std::string>{
              fmt::format("freeze    {}: 1 parameter; tied: model.a (also model.b)", name)});
    run.train();
    CHECK(is_same(run, "model.a", 0, 2));
    CHECK_FALSE(is_same(run, "model.bias", 0, 1));
  }
  CHECK(TestRun(tied_config("")).session.context().networks.descriptions() ==
        std::vector<std::string>{"model: TestTiedWeights, 30 parameters"});
}

TEST_CASE("a group takes a tied weight by each of its names, and says both") {
  const auto groups = [](const std::string& list) {
    std::string yaml = tied_config("");
    const std::string adam = "class: Adam, ";
    return yaml.replace(yaml.find(adam), adam.size(), "class: SGD, groups: " + list + ", ");
  };
  for (const char* name : {"^a$", "^b$", "^model\\.b$"}) {
    CAPTURE(name);
    TestRun run(groups(fmt::format("[{{match: '{}', lr: 0}}]", name)));
    run.train();
    CHECK(is_same(run, "model.a", 0, 2));
    CHECK_FALSE(is_same(run, "model.bias", 0, 1));
  }
  CHECK(message_of([&] { TestRun(groups("[{match: ^a$, lr: 0}, {match: ^b$, lr: 1}]")); })
            .find("optimizer/groups/1/match: \"^b$\" matches no parameter that an earlier group "
                  "leaves; the parameters are: a (also b), bias") != std::string::npos);
}

TEST_CASE("rules that hold all parameters are refused before the run has a folder") {
  const auto error = [](const std::string& freeze) {
    TestRun run(config_of(freeze));
    return message_of([&] { run.session.check(); });
  };
  const auto said = [](int step) {
    return fmt::format(
        "test.yaml:16: freeze: holds all parameters that are trained in step {}: nothing is "
        "left for an update to change\n  on the command line, to train them all: --freeze null",
        step);
  };
  CHECK(error("[{match: \".*\"}]") == said(1));
  CHECK(error("[{match: \"first|norm\"}, {match: last, from: 1e, until: 2e}]") == said(5));
  CHECK(error("[{match: \"first|norm\"}, {match: last, from: 2e}]") == "no error");
  CHECK(error("null") == "no error");
}

}  // namespace freezing_test
}  // namespace stepop
