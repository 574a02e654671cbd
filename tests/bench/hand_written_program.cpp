// The loop by hand as a program of its own, which has the system's malloc as any program by hand:
// reads lines "BATCH STEPS", trains, and answers with the seconds. On the images in a folder that
// is named, as framework_loops.py writes them, or on made-up ones. With STEPOP_BENCH_OPTIMIZER=sgd
// it is SGD.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

#include "tests/bench/hand_written.h"
#include "tests/bench/training.h"

int main(int argc, char** argv) {
  namespace bench = stepop::bench;
  using Loop = bench::HandWrittenLoop;
  const std::string data =
      argc > 1
          ? fmt::format("{{class: Idx, images: {0}/images.idx, labels: {0}/labels.idx}}", argv[1])
          : "{class: Synthetic, size: 60000}";
  const char* named = std::getenv("STEPOP_BENCH_OPTIMIZER");
  const auto optimizer = named != nullptr && std::string_view(named) == "sgd"
                             ? Loop::Optimizer::kFusedSgd
                             : Loop::Optimizer::kFusedKernel;
  std::map<int64_t, Loop> loops;
  for (int64_t batch_size = 0, steps = 0; std::cin >> batch_size >> steps;) {
    auto [place, is_new] = loops.try_emplace(batch_size, bench::lenet_yaml(batch_size, data),
                                             Loop::Data::kGathered, optimizer);
    std::cout << place->second.time_steps(steps) << std::endl;
  }
}
