#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/run/device.h"
#include "runtime/train/run/thread_wait.h"
#include "tests/bench/measure.h"
#include "tests/bench/rows.h"

/// Runs the benchmarks that are named, or all.
int main(int argc, char** argv) {
  // Threads wait as in the command `stepop`; OpenMP reads these variables when it is loaded.
  if (const char* started = "STEPOP_BENCH_STARTED"; std::getenv(started) == nullptr) {
    ::setenv(started, "1", 1);
    stepop::set_default_thread_wait();
    ::execv("/proc/self/exe", argv);
  }
  namespace bench = stepop::bench;
  const std::vector<std::pair<std::string, std::function<void()>>> benches = {
      {"steps", bench::bench_steps},
      {"frameworks", bench::bench_frameworks},
      {"python_data", bench::bench_python_data},
      {"exported", bench::bench_exported},
      {"start", bench::bench_start},
      {"log", bench::bench_log},
      {"loader", bench::bench_loader},
      {"evaluation", bench::bench_evaluation},
      {"outputs", bench::bench_outputs},
      {"memory", bench::bench_memory},
      {"checkpoint", bench::bench_checkpoint},
      {"resume", bench::bench_resume},
      {"code", bench::bench_code},
      {"vunet", bench::bench_vunet},
      {"extensible", bench::bench_extensible},
      {"pix2pix", bench::bench_pix2pix},
      {"device", bench::bench_device}};
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  try {
    const bench::Stopwatch watch;
    fmt::print("{}; ratio: how many times faster than the baseline of the row\n",
               stepop::describe_device(c10::kCPU));
    for (const auto& name : wanted) {
      const bool is_known = std::any_of(benches.begin(), benches.end(),
                                        [&](const auto& bench) { return bench.first == name; });
      if (!is_known) throw std::runtime_error("no benchmark \"" + name + "\"");
    }
    for (const auto& [name, run] : benches) {
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) run();
    }
    fmt::print("\n{:.0f} s\n", watch.seconds());
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return 1;
  }
}
