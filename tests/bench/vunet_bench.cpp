// Training steps of a VUNet against the same network in PyTorch, in Python.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"

namespace stepop::bench {

void bench_vunet() {
  print_header("Training steps: VUNet, color_L1 and KL, Adam; against PyTorch in Python");
  struct Case {
    int64_t size, nf_start, batch_size, steps;
  };
  for (const Case& c : {Case{64, 16, 8, 2}, Case{128, 16, 4, 1}}) {
    Process process({python(), "-B", STEPOP_SOURCE_DIR "/tests/bench/pytorch_vunet.py",
                     std::to_string(at::get_num_threads()), std::to_string(c.size),
                     std::to_string(c.nf_start), std::to_string(c.batch_size)},
                    ".");
    const auto ask = [&](const char* optimizer) {
      return process.ask_seconds(fmt::format("{} {}", optimizer, c.steps));
    };
    const std::string yaml = fmt::format(
        "iterator: VUNetIterator\n"
        "model: {{class: VUNet, spatial_size: {0}, nf_start: {1}, nf_max: {2}}}\n"
        "losses: {{color_L1: {{weight: 10}}, KL: {{weight: 1e-4}}}}\n"
        "optimizer: {{class: Adam, lr: 1e-4}}\n"
        "datasets: {{train: {{class: Figures, size: {0}}}}}\n"
        "batch_size: {3}\n"
        "log_ops: []\n",
        c.size, c.nf_start, 2 * c.nf_start, c.batch_size);
    const auto times = take_turns_with_training(
        yaml, c.steps, /*rounds=*/30, {[&] { return ask("adam"); }, [&] { return ask("fused"); }});
    const auto text = [&](size_t i) {
      return per_second(static_cast<double>(c.steps * c.batch_size), median(times[i]), "images");
    };
    const std::string what = fmt::format("steps, {0}x{0}, batch {1}", c.size, c.batch_size);
    print_row({what, "PyTorch, Adam", speedup(times[0], times[1]), text(0), text(1)});
    print_row({what, "PyTorch, Adam(fused=True)", speedup(times[0], times[2]), text(0), text(2)});
  }
}

}  // namespace stepop::bench
