// The loop by hand as a program of its own, which has the system's malloc as any program by hand:
// reads lines "BATCH STEPS", trains, and answers with the seconds.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <map>

#include "tests/bench/hand_written.h"
#include "tests/bench/training.h"

int main() {
  namespace bench = stepop::bench;
  using Loop = bench::HandWrittenLoop;
  std::map<int64_t, Loop> loops;
  for (int64_t batch_size = 0, steps = 0; std::cin >> batch_size >> steps;) {
    auto [place, is_new] = loops.try_emplace(batch_size, bench::lenet_yaml(batch_size),
                                             Loop::Data::kGathered, Loop::Optimizer::kFusedKernel);
    std::cout << place->second.time_steps(steps) << std::endl;
  }
}
