// What a checkpoint of 500 MB costs a training loop.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/train/checkpoint/checkpoint_writer.h"
#include "tests/bench/measure.h"
#include "tests/bench/rows.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

constexpr int64_t kTensors = 50;
constexpr int64_t kFloats = 2'500'000;  // 10 MB a tensor
constexpr int64_t kWidth = 768;
constexpr int kRounds = 5;

/// So many times as long as a plain write are the steps after a checkpoint, so that it is written
/// within them.
constexpr double kStepsPerWrite = 2;

/// A loop whose step is one matrix product, with a checkpoint before the first step.
class Loop {
 public:
  Loop() {
    checkpoint_.progress.global_step = 1;
    for (int64_t i = 0; i < kTensors; ++i) {
      checkpoint_.tensors[fmt::format("model.{}", i)] = at::ones({kFloats});
    }
    const Stopwatch watch;
    save_plainly();
    const double of_write = watch.seconds();
    run(10);
    steps_ = static_cast<int64_t>(10 * kStepsPerWrite * of_write / run(10)) + 1;
  }

  /// The seconds of all steps.
  double without() { return run(steps_); }

  double plain() {
    const Stopwatch watch;
    save_plainly();
    run(steps_);
    return watch.seconds();
  }

  /// With the time after the last step in which the file is not yet written.
  double behind() {
    const Stopwatch watch;
    writer_.save(checkpoint_);
    standstills.push_back(watch.seconds());
    run(steps_);
    writer_.wait();
    return watch.seconds();
  }

  /// The seconds that each save of `behind` took.
  std::vector<double> standstills;

 private:
  void save_plainly() { save_checkpoint(folder_.path(), checkpoint_); }

  double run(int64_t steps) {
    const Stopwatch watch;
    for (int64_t i = 0; i < steps; ++i) at::mm_out(product_, factor_, factor_);
    return watch.seconds();
  }

  const ScratchFolder folder_;
  Checkpoint checkpoint_;
  CheckpointWriter writer_{folder_.path()};
  at::Tensor factor_ = at::ones({kWidth, kWidth});
  at::Tensor product_ = at::empty({kWidth, kWidth});
  int64_t steps_ = 0;
};

/// With so many threads of LibTorch in the loop.
void bench_with(int threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  Loop loop;
  const auto times =
      take_turns(kRounds, {[&] { return loop.without(); }, [&] { return loop.plain(); },
                           [&] { return loop.behind(); }});
  at::set_num_threads(before);
  std::vector<double> plain;
  std::vector<double> behind;
  for (size_t i = 0; i < times[0].size(); ++i) {
    plain.push_back(times[1][i] - times[0][i]);
    behind.push_back(times[2][i] - times[0][i]);
  }
  // The first one makes the buffers, in the round that is not counted.
  const std::vector<double> standstills(loop.standstills.begin() + 1, loop.standstills.end());
  const std::string of_plain = duration_text(median(plain));
  const std::string of_loop = fmt::format("{} thread{}: ", threads, threads == 1 ? "" : "s");
  print_row({of_loop + "standstill", "plain write", median(plain) / median(standstills),
             duration_text(median(standstills)), of_plain});
  print_row({of_loop + "the first one's", "plain write", median(plain) / loop.standstills.front(),
             duration_text(loop.standstills.front()), of_plain});
  print_row({of_loop + "with slower steps", "plain write", median(plain) / median(behind),
             duration_text(median(behind)), of_plain});
}

}  // namespace

void bench_checkpoint() {
  print_header(
      fmt::format("What a checkpoint of {} MB costs the loop", kTensors * kFloats * 4 / 1'000'000));
  const int most = at::get_num_threads();
  for (int threads = 1; threads <= most; threads += std::max(1, most - 1)) bench_with(threads);
}

}  // namespace stepop::bench
