// Memory must not grow: neither with the steps of a training nor with the examples of an
// evaluation.
#include <fmt/format.h>

#include "runtime/loop/evaluation.h"
#include "runtime/loop/session.h"
#include "tests/bench/measure.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

constexpr int64_t kEarly = 100;
constexpr int64_t kSteps = 20000;
constexpr int64_t kExamples = 100000;
constexpr int64_t kBatchSize = 100;

class MemoryAtSteps : public Hook {
 public:
  void after_step(int64_t step) override {
    if (step == kEarly) early = resident_megabytes();
    if (step == kSteps) late = resident_megabytes();
  }
  double early = 0;
  double late = 0;
};

void print(const std::string& what, const std::string& when, double early, double late) {
  print_row(
      {what, when, late / early, fmt::format("{:.1f} MB", late), fmt::format("{:.1f} MB", early)});
}

}  // namespace

void bench_memory() {
  print_header("Memory in RAM at the end; the ratio is end / early");
  MemoryAtSteps memory;
  train(
      "iterator: Classifier\n"
      "model: {class: LeNet, image_size: [8, 8], padding: [2, 2]}\n"
      "optimizer: Adam\n"
      "datasets: {train: {class: Synthetic, size: 16000, shape: [1, 8, 8]}}\n"
      "batch_size: 4\n"
      "log_freq: 500\n",
      kSteps, &memory);
  print("20,000 steps, with logs", "after 100 steps", memory.early, memory.late);

  const Config config = config_of(fmt::format(
      "iterator: Classifier\nmodel: {{class: LeNet, image_size: [8, 8], padding: [2, 2]}}\n"
      "optimizer: Adam\nbatch_size: {}\n"
      "datasets: {{validation: {{class: Synthetic, size: {}, shape: [1, 8, 8]}}}}\n",
      kBatchSize, kExamples));
  Session session(config, /*train=*/false, /*debug=*/false, /*allow_unknown=*/false);
  const ScratchFolder scratch;
  double early = 0;
  evaluate(session.settings(), session.iterator(), session.context(), session.position(),
           scratch.path("eval"), "none", [&](int64_t done, int64_t) {
             if (done == kEarly * kBatchSize) early = resident_megabytes();
           });
  print("evaluation of 100,000 examples", "after 100 batches", early, resident_megabytes());
}

}  // namespace stepop::bench
