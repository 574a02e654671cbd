// Steps per second of the loop against loops that are written by hand.
#include <fmt/format.h>

#include "tests/bench/hand_written.h"
#include "tests/bench/measure.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"

namespace stepop::bench {

void bench_steps() {
  print_header("Training steps: LeNet, 28x28 images, Adam; against LibTorch by hand");
  constexpr int kRounds = 100;
  for (const int64_t batch_size : {4, 64}) {
    const int64_t steps = batch_size == 4 ? 50 : 15;
    const std::string yaml = lenet_yaml(batch_size);
    using Loop = HandWrittenLoop;
    Loop gathered(yaml, Loop::Data::kGathered, Loop::Optimizer::kFusedKernel);
    Loop prepared(yaml, Loop::Data::kPrepared, Loop::Optimizer::kFusedKernel);
    Loop torch_optim(yaml, Loop::Data::kGathered, Loop::Optimizer::kTorchOptim);
    const auto times = take_turns_with_training(
        yaml, steps, kRounds,
        {[&] { return gathered.time_steps(steps); }, [&] { return prepared.time_steps(steps); },
         [&] { return torch_optim.time_steps(steps); }});
    const char* names[] = {"", "by hand, fused kernel", "the same, batches made before",
                           "by hand, torch::optim::Adam"};
    const auto text = [&](size_t i) {
      return per_second(static_cast<double>(steps), median(times[i]), "steps");
    };
    for (size_t i = 1; i < times.size(); ++i) {
      print_row({fmt::format("steps, batch {}", batch_size), names[i], speedup(times[0], times[i]),
                 text(0), text(i)});
    }
  }
}

}  // namespace stepop::bench
