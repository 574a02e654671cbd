// Memory must not grow: neither with the steps of a training nor with the examples of an
// evaluation.
#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "eval_out/write/eval_writer.h"
#include "runtime/train/loop/evaluation.h"
#include "runtime/train/session/session.h"
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

/// Outputs of 40 bytes and of 80, of which the second ones are compressed if any are.
void write_a_million(const std::string& what, EvalCompression compression) {
  constexpr int64_t kMillion = 1'000'000;
  const at::Tensor values = at::randint(256, {kBatchSize, 20}, at::kFloat);
  std::vector<int64_t> indices(kBatchSize);
  std::iota(indices.begin(), indices.end(), 0);
  const ScratchFolder scratch;
  EvalWriter writer(scratch.path("outputs.h5"), kMillion, {}, {.compression = compression});
  double early = 0;
  while (writer.rows() < kMillion) {
    writer.write({.outputs = {{"few", values.slice(1, 0, 10)}, {"more", values}}}, indices);
    for (auto& index : indices) index += kBatchSize;
    if (writer.rows() == 1000) early = resident_megabytes();
  }
  writer.finish();
  print(what, "after 1,000", early, resident_megabytes());
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
  Evaluation(session.settings().evaluations.at(0), session.iterator(), session.context(), "none")
      .run(session.position(), scratch.path("eval"), [&](int64_t done, int64_t) {
        if (done == kEarly * kBatchSize) early = resident_megabytes();
      });
  print("evaluation of 100,000 examples", "after 100 batches", early, resident_megabytes());

  write_a_million("1,000,000 outputs", EvalCompression::kNone);
  write_a_million("1,000,000 outputs, gzip", EvalCompression::kGzip);
}

}  // namespace stepop::bench
