#include "runtime/train/loop/evaluation.h"
#include "runtime/train/iterator/splits.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/callbacks/stored_config.h"
#include "eval_out/read/eval_reader.h"
#include "runtime/data/dataset.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/python.h"
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
    return Evaluation(session.settings().evaluations.at(0), session.iterator(), session.context(),
                      git)
        .run(
            session.position(), run_.root() + "/eval", [](int64_t, int64_t) {},
            [&] {
              if (TestRandomOutputs::batches == stop_at) throw Interrupted("a test");
            });
  }

  std::string folder() const { return run_.root() + "/eval"; }

 private:
  TestRun run_;
};

State outputs_of(const EvaluationResult& result) {
  const EvalFile file(result.outputs);
  CHECK(file.complete());
  return {{"logits", file.read("outputs/logits")}, {"noise", file.read("labels/noise")}};
}

TEST_CASE("an evaluation that was stopped resumes at its row, with the same random numbers") {
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

TEST_CASE("one that was stopped in a callback resumes at the callbacks: its outputs are there") {
  Evaluating undisturbed;
  const EvaluationResult whole = undisturbed();
  Evaluating evaluating;
  CHECK_THROWS_AS(evaluating(10), Interrupted);  // when the outputs are read
  const EvaluationResult rest = evaluating();
  CHECK(TestRandomOutputs::batches == 0);
  CHECK(differences(outputs_of(rest), outputs_of(whole)) == "");
  CHECK((rest.scalars == whole.scalars));
}

TEST_CASE("outputs that a process left damaged are set aside with a warning, and made again") {
  Evaluating undisturbed;
  const EvaluationResult whole = undisturbed();
  for (const bool is_part : {true, false}) {
    CAPTURE(is_part);
    Evaluating evaluating;
    if (is_part) {
      CHECK_THROWS_AS(evaluating(5), Interrupted);
    } else {
      std::filesystem::remove(evaluating().folder + "/scalars.json");
    }
    const std::string outputs = evaluating.folder() + "/outputs.h5";
    const std::string left = outputs + (is_part ? ".part" : "");
    std::string bytes = read_bytes(left);
    const size_t heap = bytes.find("GCOL");
    REQUIRE(heap != std::string::npos);
    bytes.replace(heap, 4, "gone");  // where the texts of the attributes are
    write_bytes(left, bytes);
    const EvaluationResult rest = evaluating();
    CHECK(TestRandomOutputs::batches == 10);
    CHECK(rest.warning.starts_with(left + ": cannot read the attribute "));
    CHECK(rest.warning.ends_with("; this evaluation starts again, and the file is " + left +
                                 ".damaged until it is over"));
    CHECK_FALSE(std::filesystem::exists(left + ".damaged"));
    CHECK(differences(outputs_of(rest), outputs_of(whole)) == "");
  }
}

TEST_CASE("what another state of the code wrote is not resumed") {
  for (const int stop_at : {5, 10}) {
    Evaluating evaluating;
    CHECK_THROWS_AS(evaluating(stop_at), Interrupted);
    evaluating(-1, "main 1234567, clean");
    CHECK(TestRandomOutputs::batches == 10);
  }
}

/// Images of noise, other ones whenever an example is drawn with other random numbers.
class TestNoise : public Dataset {
 public:
  explicit TestNoise(const Config&) {}
  int64_t size() const override { return 6; }
  Example get(int64_t index, Random& random) const override {
    at::Tensor image = at::empty({1, 12, 12});
    auto* pixels = image.mutable_data_ptr<float>();
    for (int64_t i = 0; i < image.numel(); ++i) pixels[i] = static_cast<float>(random.uniform());
    Example example;
    example.tensors.set("image", image.add(static_cast<double>(index) / 10));
    return example;
  }
};
STEPOP_REGISTER_DATASET(TestNoise, {"For tests.", {}});

/// Returns what it saw.
class TestSeen : public Iterator {
 public:
  explicit TestSeen(const Context& context)
      : Iterator(context), kind_(context.config.get("extra/kind", "seen")) {}

  StepOps step_op(const Batch& batch) override {
    return {.eval_op = [=, this] {
      EvalOutputs outputs;
      if (kind_ == "seen") outputs.outputs.set("seen", batch["image"]);
      if (kind_ == "ragged") {
        std::vector<at::Tensor> boxes;
        for (const int64_t index : batch.indices()) boxes.push_back(at::ones({index, 4}));
        outputs.outputs.set("boxes", boxes);
      }
      return outputs;
    }};
  }

 private:
  std::string kind_;
};
STEPOP_REGISTER_ITERATOR(TestSeen, {"For tests.", {}});

/// How far the fixed examples are from those that a callback draws.
double fixed_difference = -1;
const Batch* fixed_examples = nullptr;
Logs test_fixed(const CallbackArguments& arguments) {
  fixed_difference = 0;
  for (size_t i = 0; i < fixed_examples->indices().size(); ++i) {
    const at::Tensor drawn =
        arguments.fixed_example(fixed_examples->indices()[i]).tensors.at("image");
    const at::Tensor fixed = (*fixed_examples)["image"][static_cast<int64_t>(i)];
    fixed_difference = std::max(fixed_difference, drawn.sub(fixed).abs().max().item<double>());
  }
  return {};
}
STEPOP_REGISTER_CALLBACK(test_fixed, test_fixed, {"For tests.", {}});

const std::string kSeen = R"(
iterator: TestSeen
model: {class: MLP, inputs: 9, classes: 3, hidden: [4]}
datasets: {train: TestNoise, validation: TestNoise}
batch_size: 4
seed: 7
num_steps: 2
log_ops: []
train_ops: []
)";

EvaluationResult evaluate_once(TestRun& run) {
  Session& session = run.session;
  return Evaluation(session.settings().evaluations.at(0), session.iterator(), session.context(),
                    "none")
      .run(session.position(), run.root() + "/eval", [](int64_t, int64_t) {});
}

TEST_CASE("callbacks draw an example with the noise that was evaluated, also afterwards") {
  const std::string path = "validation/eval_op/images/";
  TestRun run(kSeen + R"(
eval_hook:
  eval_callbacks:
    images: {class: image_metrics, prediction: seen, target: image}
    fixed: test_fixed
)");
  const Batch fixed = run.session.context().splits.fixed_examples("validation");
  fixed_examples = &fixed;
  const EvaluationResult result = evaluate_once(run);
  CHECK(result.failures.empty());
  CHECK(std::isinf(result.scalars.at(path + "psnr")));  // equal to the last bit
  CHECK(fixed_difference == 0);

  const EvalFile file(result.outputs);
  const Config config = stored_config(file, {"images"}, {}, {}, nullptr);
  const StoredDataset data(config, "datasets/validation");
  const CallbackScalars afterwards =
      EvaluationCallbacks(config).run("validation/eval_op", 0, result.folder, data, file);
  CHECK(afterwards.failures.empty());
  CHECK(std::isinf(afterwards.scalars.at(path + "psnr")));
}

TEST_CASE("the array that an evaluation names is one that h5py opens, whatever was written") {
  for (const auto& [kind, key, shape] : {std::tuple{"seen", "outputs/seen", "(6, 1, 12, 12)"},
                                         std::tuple{"ragged", "outputs/boxes/values", "(15, 4)"},
                                         std::tuple{"none", "index", "(6,)"}}) {
    TestRun run(kSeen + "extra: {kind: " + kind + "}\n");
    for (int i = 0; i < 2; ++i) {
      const EvaluationResult result = evaluate_once(run);
      CHECK(result.first_output == key);
      CHECK(run_python("import sys, h5py; print(h5py.File(sys.argv[1])[sys.argv[2]].shape)",
                       {result.outputs, result.first_output}) == std::string(shape) + "\n");
      std::filesystem::remove(result.folder + "/scalars.json");  // the second finds a whole file
    }
  }
}

TEST_CASE("one object evaluates several times, each at the step that it finds") {
  TestRun run(kSeen);
  Session& session = run.session;
  const Evaluation evaluation(session.settings().evaluations.at(0), session.iterator(),
                              session.context(), "none");
  for (const int64_t step : {3, 8}) {
    session.position().global_step = step;
    const EvaluationResult result = evaluation.run(
        session.position(), run.root() + "/eval/" + std::to_string(step), [](int64_t, int64_t) {},
        {}, step == 8 ? "1234" : "");
    const OrderedMap<Attribute> attributes = EvalFile(result.outputs).attributes();
    CHECK((attributes.at("global_step") == Attribute(step)));
    CHECK(attributes.contains("checkpoint") == (step == 8));
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
