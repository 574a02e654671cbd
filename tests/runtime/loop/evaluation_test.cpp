#include "runtime/loop/evaluation.h"

#include <ATen/ops/rand.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "eval_out/read/eval_reader.h"
#include "runtime/networks/network.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace evaluation_test {

/// Evaluates to random numbers, and counts its batches.
class TestRandomOutputs : public Iterator {
 public:
  static inline int batches = 0;

  explicit TestRandomOutputs(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {}

  StepOps step_op(const Batch& batch) override {
    ++batches;
    const at::Tensor logits = model_->forward(batch["image"]);
    return {.train_op = [=, this] { update_.step(logits.mean()); },
            .eval_op =
                [=] {
                  std::vector<std::string> texts;
                  for (const int64_t index : batch.indices()) {
                    texts.push_back("example " + std::to_string(index));
                  }
                  const at::Tensor noise = at::rand({batch.size()});
                  return EvalOutputs{.outputs = {{"logits", logits}, {"text", texts}},
                                     .labels = {{"noise", noise}}};
                }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
};

STEPOP_REGISTER_ITERATOR(TestRandomOutputs, {"For tests.", {}});

constexpr const char* kYaml = R"(
iterator: TestRandomOutputs
model: {class: MLP, inputs: 9, classes: 3, hidden: [4], dropout: 0.5}
optimizer: {class: SGD, lr: 0.1}
datasets:
  train: {class: Synthetic, size: 8, shape: [1, 3, 3], classes: 3}
  validation: {class: Synthetic, size: 38, shape: [1, 3, 3], classes: 3}
batch_size: 4
num_steps: 2
log_ops: []
)";

class Evaluating {
 public:
  explicit Evaluating(const std::string& more = "", const std::string& yaml = kYaml)
      : run_(yaml + more) {}

  /// The evaluation in one folder; breaks off before the batch number `stop_at`, from 0.
  EvaluationResult operator()(int stop_at = -1, const std::string& git = "none") {
    TestRandomOutputs::batches = 0;
    Session& session = run_.session;
    return evaluate(
        session.settings(), session.iterator(), session.context(), session.position(),
        run_.root() + "/eval", git, [](int64_t, int64_t) {},
        [&] {
          if (TestRandomOutputs::batches == stop_at) throw Interrupted("a test");
        });
  }

 private:
  TestRun run_;
};

State outputs_of(const EvaluationResult& result) {
  const EvalFile file(result.outputs);
  CHECK(file.complete());
  return {{"logits", file.read("outputs/logits")}, {"noise", file.read("labels/noise")}};
}

TEST_CASE("an evaluation that was stopped goes on at its row, with the same random numbers") {
  Evaluating undisturbed;
  const EvaluationResult whole = undisturbed();
  CHECK(TestRandomOutputs::batches == 10);
  for (const int stop_at : {1, 5, 9}) {
    Evaluating evaluating;
    CHECK_THROWS_AS(evaluating(stop_at), Interrupted);
    const EvaluationResult rest = evaluating();
    CHECK(TestRandomOutputs::batches == 10 - stop_at);
    CHECK(differences(outputs_of(rest), outputs_of(whole)) == "");
    CHECK(EvalFile(rest.outputs).read_texts("outputs/text", 37, 1).at(0) == "example 37");
    CHECK((rest.scalars == whole.scalars));
    CHECK(rest.first_output == "outputs/logits");
  }
}

TEST_CASE("so does one that compresses its outputs, whose chunks are a batch here") {
  const std::string yaml = std::regex_replace(kYaml, std::regex("classes: 3"), "classes: 20000");
  const std::string gzip = "eval_hook: {compression: gzip}\n";
  Evaluating undisturbed("", yaml);
  const EvaluationResult whole = undisturbed();
  for (const int stop_at : {1, 5, 9}) {
    Evaluating evaluating(gzip, yaml);
    CHECK_THROWS_AS(evaluating(stop_at), Interrupted);
    const EvaluationResult rest = evaluating();
    CHECK(TestRandomOutputs::batches == 10 - stop_at);
    CHECK(differences(outputs_of(rest), outputs_of(whole)) == "");
  }
}

TEST_CASE("one that was stopped in a callback goes on with the callbacks: its outputs are there") {
  Evaluating undisturbed;
  const EvaluationResult whole = undisturbed();
  Evaluating evaluating;
  CHECK_THROWS_AS(evaluating(10), Interrupted);  // when the outputs are read
  const EvaluationResult rest = evaluating();
  CHECK(TestRandomOutputs::batches == 0);
  CHECK(differences(outputs_of(rest), outputs_of(whole)) == "");
  CHECK((rest.scalars == whole.scalars));
}

TEST_CASE("what another state of the code wrote is not gone on with") {
  for (const int stop_at : {5, 10}) {
    Evaluating evaluating;
    CHECK_THROWS_AS(evaluating(stop_at), Interrupted);
    evaluating(-1, "main 1234567, clean");
    CHECK(TestRandomOutputs::batches == 10);
  }
}

TEST_CASE("the mean of a label counts every example once, also of a smaller last batch") {
  Evaluating evaluating;
  const EvaluationResult result = evaluating();
  const double mean = EvalFile(result.outputs).read("labels/noise").mean().item<double>();
  REQUIRE(result.scalars.contains("validation/eval_op/noise"));
  CHECK(result.scalars.at("validation/eval_op/noise") == doctest::Approx(mean).epsilon(1e-6));
}

}  // namespace evaluation_test
}  // namespace stepop
