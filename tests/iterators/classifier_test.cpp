#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/data/dataset.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace classifier_test {

TEST_CASE("the classifier trains on what is no image, such as another network's logits, too") {
  const std::string common = "optimizer: {class: SGD, lr: 0.1}\nnum_steps: 2\nbatch_size: 4\n";
  TestRun teacher(common +
                  "iterator: Classifier\n"
                  "model: {class: MLP, inputs: 9, classes: 3}\n"
                  "datasets:\n"
                  "  train: {class: Synthetic, size: 8, shape: [1, 3, 3], classes: 3}\n"
                  "  validation: {class: Synthetic, size: 8, shape: [1, 3, 3], classes: 3}\n");
  teacher.train();
  CHECK(std::filesystem::exists(teacher.root() + "/train/train/log_op/input_0000001.png"));
  const std::string outputs =
      "{class: EvalOutputs, path: " + teacher.root() + ", keys: {image: logits, class: class}}\n";
  TestRun student(common +
                  "iterator: Classifier\n"
                  "model: {class: MLP, inputs: 3, classes: 3}\n"
                  "datasets:\n  train: " +
                  outputs + "  validation: " + outputs);
  student.session.check();
  student.train();
  CHECK(student.metrics().front().contains("train/log_op/loss"));
  CHECK_FALSE(std::filesystem::exists(student.root() + "/train/train/log_op"));
}

/// Four images; `fault` says what is wrong with the class of the third.
class TestLabels : public Dataset {
 public:
  explicit TestLabels(const Config& params) : fault_(params.get("fault", "none")) {}
  int64_t size() const override { return 4; }
  Example get(int64_t index, Random&) const override {
    at::Tensor label = at::full({}, index, at::kLong);
    if (fault_ == "large" && index == 2) label = at::full({}, 12, at::kLong);
    if (fault_ == "negative" && index == 2) label = at::full({}, -1, at::kLong);
    if (fault_ == "float") label = label.to(at::kFloat);
    if (fault_ == "wrapped") label = label.reshape({1});
    if (fault_ == "both") label = label.reshape({1}).to(at::kInt);
    return {.tensors = {{"image", at::zeros({1, 3, 3})}, {"class", label}}, .texts = {}};
  }

 private:
  std::string fault_;
};

STEPOP_REGISTER_DATASET(TestLabels, {"For tests.", {{"fault", "none", "what is wrong"}}});

/// What the classifier says, before a run has its folder, of such labels; `more` goes into the
/// config.
std::string said_of(const std::string& fault, const std::string& more = "") {
  return message_of([&] {
    Session session(test_config("iterator: Classifier\n"
                                "model: {class: MLP, inputs: 9, classes: 10}\n"
                                "optimizer: {class: SGD, lr: 0.1}\nnum_steps: 2\nbatch_size: 4\n"
                                "samplers: {train: sequential}\n"
                                "datasets:\n"
                                "  train: {class: TestLabels, fault: " +
                                fault + "}\n  validation: {class: TestLabels}\n" + more),
                    true, false, false);
    session.check();
  });
}

TEST_CASE("a class that the network has no output for is named with key, example and what fits") {
  CHECK(said_of("none") == "no error");
  CHECK(said_of("large") ==
        "train/step_op: \"class\" of the example 2 is 12: the network has 10 outputs, classes 0 to "
        "9");
  CHECK(said_of("negative") ==
        "train/step_op: \"class\" of the example 2 is -1: the network has 10 outputs, classes 0 to "
        "9; \"ignore: -1\" leaves it out");
}

TEST_CASE("classes of another type or shape are named with what makes them right") {
  CHECK(said_of("float") ==
        "train/step_op: \"class\" is float32 [4]; expected int64 [4], classes for the logits "
        "[4, 10]; .to(at::kLong) makes it so");
  CHECK(said_of("wrapped") ==
        "train/step_op: \"class\" is int64 [4, 1]; expected int64 [4], classes for the logits "
        "[4, 10]; .squeeze(1) makes it so");
  CHECK(said_of("both") ==
        "train/step_op: \"class\" is int32 [4, 1]; expected int64 [4], classes for the logits "
        "[4, 10]; .squeeze(1).to(at::kLong) makes it so");
}

TEST_CASE(
    "images that the network does not take are named beside the keys that say what it takes") {
  const auto refused = [](const std::string& model, const std::string& shape) {
    return message_of([&] {
      Session session(
          test_config("iterator: Classifier\n"
                      "optimizer: {class: SGD, lr: 0.1}\nnum_steps: 2\nbatch_size: 4\n"
                      "model: " +
                      model + "\ndatasets: {train: {class: Synthetic, size: 8, shape: " + shape +
                      "}}\n"),
          true, false, false);
      session.check();
    });
  };
  CHECK(refused("LeNet", "[1, 28, 28]") == "no error");
  CHECK(refused("LeNet", "[1, 32, 32]") ==
        "train/step_op: expected images [B, 1, 28, 28], by model/channels and model/image_size, "
        "found float32 [4, 1, 32, 32]");
  CHECK(refused("LeNet", "[3, 28, 28]") ==
        "train/step_op: expected images [B, 1, 28, 28], by model/channels and model/image_size, "
        "found float32 [4, 3, 28, 28]");
  CHECK(refused("{class: MLP, inputs: 784}", "[1, 8, 8]") ==
        "train/step_op: expected 784 numbers an example, by model/inputs, found float32 [4, 1, 8, "
        "8]");
  CHECK(
      refused("{class: UnetGenerator, n_downs: 0}", "[1, 8, 8]") ==
      "train/step_op: expected images [B, 3, H, W], by model/in_channels, found float32 [4, 1, 8, "
      "8]");
  CHECK(refused("{class: RRDBNet, nb: 1}", "[1, 8, 8]") ==
        "train/step_op: expected images [B, 3, H, W], by model/in_nc, found float32 [4, 1, 8, 8]");
}

TEST_CASE("images of four channels train and are logged") {
  TestRun run(
      "iterator: Classifier\nmodel: {class: MLP, inputs: 64}\n"
      "optimizer: {class: SGD, lr: 0.1}\nnum_steps: 1\nbatch_size: 4\n"
      "datasets: {train: {class: Synthetic, size: 8, shape: [4, 4, 4]}}\n");
  run.session.check();
  run.train();
  CHECK(std::filesystem::exists(run.root() + "/train/train/log_op/input_0000001.png"));
}

TEST_CASE("a callback that names a key which is not there is found before a run has its folder") {
  const std::string there =
      "\n  the eval op returns outputs/logits, outputs/class, labels/loss, weights/loss; the "
      "dataset has image, "
      "class, index";
  CHECK(said_of("none",
                "eval_hook:\n  eval_callbacks: {a: {class: confusion_matrix, target: clas}}\n") ==
        "test.yaml:11: eval_hook/eval_callbacks/a/target: the callback confusion_matrix looks for "
        "the key \"clas\", which is not there; did you mean \"class\"?" +
            there);
  CHECK(
      said_of("none",
              "evaluations:\n  more: {eval_callbacks: {r: {class: regression, prediction: "
              "logit}}}\n") ==
      "test.yaml:11: evaluations/more/eval_callbacks/r/prediction: the callback regression looks "
      "for the key \"logit\", which is not there; did you mean \"logits\"?\n  the eval op returns "
      "outputs/logits, outputs/class, labels/loss, weights/loss");
  CHECK(said_of("none",
                "eval_hook: {eval_callbacks: {h: {class: examples, show: [logits, labl]}}}\n") ==
        "test.yaml:10: eval_hook/eval_callbacks/h/show: the callback examples looks for the key "
        "\"labl\", which is not there" +
            there);
  CHECK(said_of("none", "eval_hook: {eval_callbacks: {r: {class: regression, target: class}}}\n") ==
        "test.yaml:10: eval_hook/eval_callbacks/r: the callback regression looks for the key "
        "\"prediction\", which is not there; name another one by \"prediction\"\n  the eval op "
        "returns outputs/logits, outputs/class, labels/loss, weights/loss");
}

}  // namespace classifier_test
}  // namespace stepop
