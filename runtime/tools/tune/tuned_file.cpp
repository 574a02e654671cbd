#include "runtime/tools/tune/tuned_file.h"

#include <fmt/format.h>
#include <torch/version.h>

#include "runtime/core/base/number_text.h"
#include "runtime/core/config/yaml_writer.h"
#include "runtime/tools/cli/kept_settings.h"
#include "runtime/train/run/machine.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace {

std::string winner_text(const TuneResult& result) {
  if (result.winner.settings.empty()) {
    return "Nothing is faster than the settings of the config beyond the noise: these are they.";
  }
  return fmt::format("{}: {:.2f} times the speed of the config as it was ({:.2f} to {:.2f}).{}",
                     result.winner.name(), result.confirmed.median, result.confirmed.low,
                     result.confirmed.high,
                     result.winner.changes_results ? " It changes results." : "");
}

}  // namespace

std::string tuned_text(const TunedSteps& tuned, const std::string& config) {
  Value::Map settings;
  for (const auto& [key, value] : tuned.settings()) settings.set(key, value);
  return fmt::format(
      "# What is fastest for {} with batches of {}, found by `stepop tune` in {}, {}.\n"
      "# {}\n# Steps a second before: {}. Measured on {} ({}), {}; stepop {}, LibTorch {}.\n{}",
      config, tuned.batch_size, span_text(tuned.seconds), local_time("%Y-%m-%d"),
      winner_text(tuned.result), short_number(1 / tuned.result.present.step_seconds), host_name(),
      machine_text(), tuned.device, STEPOP_VERSION, TORCH_VERSION, to_yaml(settings));
}

}  // namespace stepop
