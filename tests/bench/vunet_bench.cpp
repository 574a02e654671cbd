// Training steps of a VUNet against the same network in PyTorch, in Python.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"

namespace stepop::bench {
namespace {

struct Case {
  int64_t size, nf_start, batch_size, steps;
};

/// `options` are lines of the config.
std::string yaml_of(const Case& c, const std::string& options) {
  return fmt::format(
      "iterator: VUNetIterator\n"
      "model: {{class: VUNet, spatial_size: {0}, nf_start: {1}, nf_max: {2}}}\n"
      "losses: {{color_L1: {{weight: 10}}, KL: {{weight: 1e-4}}}}\n"
      "optimizer: {{class: Adam, lr: 1e-4}}\n"
      "datasets: {{train: {{class: Figures, size: {0}}}}}\n"
      "batch_size: {3}\n"
      "log_ops: []\n{4}",
      c.size, c.nf_start, 2 * c.nf_start, c.batch_size, options);
}

/// A row for each kind of training in PyTorch; `options` are ours, `what` says them.
void compare(const Case& c, const std::string& what, const std::string& options,
             const std::vector<std::pair<std::string, std::string>>& kinds) {
  Process process({python(), "-B", STEPOP_SOURCE_DIR "/tests/bench/pytorch_vunet.py",
                   std::to_string(at::get_num_threads()), std::to_string(c.size),
                   std::to_string(c.nf_start), std::to_string(c.batch_size)},
                  ".");
  std::vector<Portion> others;
  for (const auto& [name, kind] : kinds) {
    others.emplace_back([&process, line = fmt::format("{} {}", kind, c.steps)] {
      return process.ask_seconds(line);
    });
  }
  const auto times = take_turns_with_training(yaml_of(c, options), c.steps, /*rounds=*/30, others);
  const auto text = [&](size_t i) {
    return per_second(static_cast<double>(c.steps * c.batch_size), median(times[i]), "images");
  };
  for (size_t i = 1; i < times.size(); ++i) {
    print_row({what, kinds[i - 1].first, speedup(times[0], times[i]), text(0), text(i)});
  }
}

}  // namespace

void bench_vunet() {
  print_header("Training steps: VUNet, color_L1 and KL, Adam; against PyTorch in Python");
  const Case small{64, 16, 8, 2};
  for (const Case& c : {small, Case{128, 16, 4, 1}}) {
    compare(c, fmt::format("steps, {0}x{0}, batch {1}", c.size, c.batch_size), "",
            {{"PyTorch, Adam", "adam"}, {"PyTorch, Adam(fused=True)", "fused"}});
  }
  const std::string as_before = "PyTorch, fused, as before";
  compare(small, "channels_last", "channels_last: true\n",
          {{as_before, "fused"}, {"PyTorch, fused, channels_last", "fused+channels_last"}});
  compare(small, "bfloat16", "precision: bfloat16\n",
          {{as_before, "fused"}, {"PyTorch, fused, autocast", "fused+bfloat16"}});
  compare(small, "bfloat16, channels_last", "precision: bfloat16\nchannels_last: true\n",
          {{as_before, "fused"}, {"PyTorch, fused, both", "fused+bfloat16+channels_last"}});
}

}  // namespace stepop::bench
