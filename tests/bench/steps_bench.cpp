// Steps per second of the loop against loops that are written by hand.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "tests/bench/hand_written.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"

namespace stepop::bench {

void bench_steps() {
  print_header("Training steps: LeNet, 28x28 images, Adam; against LibTorch by hand");
  Process program({STEPOP_BINARY_DIR "/stepop_bench_by_hand"}, ".");
  constexpr int kRounds = 100;
  for (const int64_t batch_size : {1, 4, 64}) {
    const int64_t steps = steps_per_round(batch_size);
    const std::string yaml = lenet_yaml(batch_size);
    using Loop = HandWrittenLoop;
    Loop gathered(yaml, Loop::Data::kGathered, Loop::Optimizer::kFusedKernel);
    Loop prepared(yaml, Loop::Data::kPrepared, Loop::Optimizer::kFusedKernel);
    Loop as_ours(yaml, Loop::Data::kGathered, Loop::Optimizer::kFusedKernel,
                 Loop::Convolutions::kAsOurs);
    Loop torch_optim(yaml, Loop::Data::kGathered, Loop::Optimizer::kTorchOptim);
    const auto ask_program = [&] {
      return program.ask_seconds(fmt::format("{} {}", batch_size, steps));
    };
    // The program is followed by a pause, after which the first portion finds cold caches: not one
    // of the two that are compared most closely.
    const auto times = take_turns_with_training(
        yaml, steps, kRounds,
        {ask_program, [&] { return torch_optim.time_steps(steps); },
         [&] { return prepared.time_steps(steps); }, [&] { return gathered.time_steps(steps); },
         [&] { return as_ours.time_steps(steps); }});
    print_steps(batch_size, times,
                {"fused kernel, a program of its own", "by hand, torch::optim::Adam",
                 "by hand, batches made before", "by hand, fused kernel",
                 "by hand, fused kernel, oneDNN as ours"});
  }
}

}  // namespace stepop::bench
