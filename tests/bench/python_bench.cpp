// Steps per second of the loop against a plain PyTorch loop in Python, which runs beside this
// process and waits while the other one is measured.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"

namespace stepop::bench {

void bench_python() {
  print_header("Training steps: LeNet, 28x28 images, Adam; against PyTorch in Python");
  Process process({python(), "-B", STEPOP_SOURCE_DIR "/tests/bench/pytorch_loop.py",
                   std::to_string(at::get_num_threads())},
                  ".");
  constexpr int kRounds = 60;
  for (const int64_t batch_size : {4, 64}) {
    const int64_t steps = steps_per_round(batch_size);
    const auto ask = [&](const char* optimizer) {
      return process.ask_seconds(fmt::format("{} {} {}", optimizer, batch_size, steps));
    };
    const auto times =
        take_turns_with_training(lenet_yaml(batch_size), steps, kRounds,
                                 {[&] { return ask("adam"); }, [&] { return ask("fused"); }});
    print_steps(batch_size, times,
                {"PyTorch, DataLoader, Adam", "PyTorch, DataLoader, Adam(fused=True)"});
  }
}

}  // namespace stepop::bench
