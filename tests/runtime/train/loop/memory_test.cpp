#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "runtime/train/loop/evaluation.h"
#include "tests/test_run.h"

namespace stepop {
namespace memory_test {

// Sanitizers keep freed memory for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

constexpr double kMostGrowth = 8;

/// The memory of this process that is in RAM, in MB.
double resident() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, pages = 0;
  file >> total >> pages;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

constexpr const char* kConfig = R"(
iterator: Classifier
model: {class: MLP, inputs: 16, hidden: [8], classes: 4}
datasets:
  train: {class: Synthetic, size: 4000, shape: [1, 4, 4], classes: 4}
  validation: {class: Synthetic, size: 100000, shape: [1, 4, 4], classes: 4}
batch_size: 4
test_batch_size: 100
optimizer: Adam
num_steps: 20000
num_threads: 1
)";

TEST_CASE("20,000 steps need no more memory than the first hundred" * doctest::skip(kIsSanitized)) {
  class Meter : public Hook {
   public:
    void after_step(int64_t step) override {
      if (step == 100) begin = resident();
      if (step == 20'000) end = resident();
    }
    double begin = 0, end = 0;
  };
  Meter meter;
  // The first evaluation loads what evaluations need; they have a test of their own.
  TestRun run(std::string(kConfig) + "eval_hook: {freq: 1000000}\n");
  run.train({&meter});
  CAPTURE(meter.begin);
  CAPTURE(meter.end);
  CHECK(meter.end > 0);
  CHECK(meter.end - meter.begin < kMostGrowth);
}

TEST_CASE("an evaluation of 100,000 examples needs no more memory than its first hundred batches" *
          doctest::skip(kIsSanitized)) {
  TestRun run(kConfig);
  double begin = 0;
  const EvaluationResult result =
      Evaluation(run.session.settings().evaluations.at(0), run.session.iterator(),
                 run.session.context(), "none")
          .run(run.session.position(), run.root() + "/eval", [&](int64_t done, int64_t) {
            if (done == 10'000) begin = resident();
          });
  const double end = resident();
  CAPTURE(begin);
  CAPTURE(end);
  CHECK(begin > 0);
  CHECK(end - begin < kMostGrowth);
  CHECK(result.failures.empty());
}

}  // namespace memory_test
}  // namespace stepop
