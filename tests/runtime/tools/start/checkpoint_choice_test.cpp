#include "runtime/tools/start/checkpoint_choice.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/core/components/registry.h"
#include "runtime/data/dataset.h"
#include "runtime/tools/start/run_command.h"
#include "tests/runtime/train/loop/command_training.h"
#include "tests/same_state.h"

namespace stepop {
namespace checkpoint_choice_test {

namespace fs = std::filesystem;

/// Does what a training beside us may do while a session is built: removes a file.
class TestRemovesFile : public Dataset {
 public:
  static inline std::string file;

  explicit TestRemovesFile(const Config& params) : source_(datasets().build(params, "dataset")) {
    if (!file.empty()) fs::remove(file);
  }

  int64_t size() const override { return source_->size(); }
  Example get(int64_t index, Random& random) const override { return source_->get(index, random); }

 private:
  std::unique_ptr<Dataset> source_;
};

STEPOP_REGISTER_DATASET(TestRemovesFile, {"For tests.", {{"dataset", "", "the other one"}}});

std::string evaluate_beside(const CommandTraining& training, const std::string& removed,
                            const std::optional<std::string>& checkpoint) {
  TestRemovesFile::file = removed;
  Arguments arguments;
  arguments.project = training.root();
  arguments.checkpoint = checkpoint;
  arguments.overrides = {
      {"datasets/validation",
       parse_yaml("!replace {class: TestRemovesFile, dataset: {class: Synthetic, size: 10, shape: "
                  "[1, 3, 3], classes: 3}}",
                  {"test.yaml", 0})}};
  const ScratchFolder elsewhere;
  const QuietIn folder(elsewhere.path());
  const std::string message = message_of([&] { run_command(arguments); });
  TestRemovesFile::file.clear();
  return message;
}

TEST_CASE("a checkpoint that a training removes once it was chosen is evaluated all the same") {
  CommandTraining training("{}");
  REQUIRE(training.start() == "no error");
  const std::string newest = training.checkpoints() + "/model-6.safetensors";
  CHECK(evaluate_beside(training, newest, {}) == "no error");
  CHECK_FALSE(fs::exists(newest));
  const std::string second = training.checkpoints() + "/model-4.safetensors";
  CHECK(evaluate_beside(training, second, "4") == "no error");
  CHECK_FALSE(fs::exists(second));
}

TEST_CASE("what -c names and is not there is an error that says what is") {
  CommandTraining training("{}");
  REQUIRE(training.start() == "no error");
  CHECK(evaluate_beside(training, "", "5") ==
        "-c: " + training.checkpoints() +
            "/model-5.safetensors: no such checkpoint; there are checkpoints of the steps 2, 4, 6");
  CHECK(evaluate_beside(training, "", "none.safetensors") ==
        "-c: none.safetensors: no such file, nor a checkpoint of the run: those are named by their "
        "step, latest, best");
}

}  // namespace checkpoint_choice_test
}  // namespace stepop
