// `data_timeout`: an example that hangs ends a run.
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <doctest/doctest.h>

#include <chrono>
#include <latch>
#include <thread>

#include "runtime/data/dataset.h"
#include "runtime/data/loader.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace data_timeout_test {

std::latch* gate = nullptr;

/// Example `bad` hangs until the gate opens.
class TestHanging : public Dataset {
 public:
  explicit TestHanging(const Config& params) : bad_(params.get<int64_t>("bad", -1)) {}
  int64_t size() const override { return 8; }
  Example get(int64_t index, Random& random) const override {
    if (index == bad_) gate->wait();
    return {.tensors = {{"image", at::full({1, 2, 2}, random.normal(), at::kFloat)},
                        {"class", at::scalar_tensor(index % 2, at::kLong)}},
            .texts = {}};
  }

 private:
  int64_t bad_;
};
STEPOP_REGISTER_DATASET(TestHanging, {"For tests.", {{"bad", "-1", "the example that hangs"}}});

struct Gate {
  Gate() { gate = &latch; }
  ~Gate() {
    latch.count_down();
    while (Loader::workers_left_behind() > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::latch latch{1};
};

/// Four steps of two examples, in order.
std::string config(const std::string& more, int train_bad, int validation_bad = -1) {
  return R"(
iterator: Classifier
model: {class: MLP, inputs: 4, hidden: [], classes: 2}
samplers: {train: sequential, validation: sequential}
batch_size: 2
num_steps: 4
log_freq: 4
start_log_freq: 4
optimizer: {class: SGD, lr: 0.1}
datasets:
  train: {class: TestHanging, bad: )" +
         std::to_string(train_bad) +
         "}\n  validation: {class: TestHanging, bad: " + std::to_string(validation_bad) + "}\n" +
         more;
}

const std::string kNothing =
    ": nothing came for 1 s (data_timeout): look at where this is read from; a larger data_timeout "
    "waits longer";

TEST_CASE("an example of the training that hangs is named, and the steps before it are saved") {
  TestRun without(config("n_data_processes: 0\n", -1));
  without.train();
  for (const char* workers : {"0", "2"}) {
    const Gate opens;
    const std::string more = std::string("data_timeout: 1s\nn_data_processes: ") + workers + "\n";
    TestRun run(config(more, 5));
    CHECK(message_of([&] { run.train(); }) ==
          "datasets/train: example 5" + kNothing + "\nthe state after step 2 was saved");
    // The data are good again: the rest of the training has the bits of one without a timeout.
    TestRun resumed(config(more, -1), run, 2);
    resumed.train();
    CHECK(differences(resumed.checkpoint(4), without.checkpoint(4)) == "");
  }
}

TEST_CASE("an example of a log and of an evaluation that hangs is named") {
  for (const int bad : {1, 7}) {  // the log sees the examples 0 and 1
    const Gate opens;
    TestRun run(config("data_timeout: 1s\n", -1, bad));
    const std::string message = message_of([&] { run.train(); });
    CHECK(message.find("datasets/validation: example " + std::to_string(bad) + kNothing) !=
          std::string::npos);
  }
}

TEST_CASE("an example that hangs is named before the first step, and as a fixed example") {
  const Gate opens;
  TestRun run(config("data_timeout: 1s\nfixed_example_indices: {validation: [3]}\n", 0, 3));
  CHECK(message_of([&] { run.session.check(); }) == "datasets/train: example 0" + kNothing);
  CHECK(message_of([&] { run.session.context().splits.fixed_examples("validation"); }) ==
        "datasets/validation: example 3" + kNothing);
}

TEST_CASE("a data_timeout that is no time is refused at the start") {
  CHECK(message_of([] {
          TestRun run(config("data_timeout: 60\n", -1));
        }).starts_with("test.yaml:13: data_timeout: expected a time"));
}

}  // namespace data_timeout_test
}  // namespace stepop
