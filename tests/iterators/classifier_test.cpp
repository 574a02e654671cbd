#include <doctest/doctest.h>

#include <filesystem>

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

}  // namespace classifier_test
}  // namespace stepop
