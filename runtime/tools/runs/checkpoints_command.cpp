#include <fmt/format.h>

#include <filesystem>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/formats/safetensors_reader.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/tools/cli/command.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Cells = std::vector<std::string>;

constexpr int kMetric = 3;  // the metric's column

/// The metric of the run's newest config; empty when the config names none, or cannot be read: the
/// checkpoints may be all that is left of a run.
std::string metric_of(const RunDirectory& run) {
  try {
    return metric_of(resolve_config({run.last_config()}, {}));
  } catch (const Error&) {
    return "";
  }
}

/// The values of one metric; the last value of a step counts.
MetricByStep read_metric(const std::string& path, const std::string& metric) {
  MetricByStep values;
  std::error_code failed;
  if (metric.empty() || !fs::exists(path, failed)) return values;
  scan_metric(path, metric, [&](int64_t step, double value) { values[step] = value; });
  return values;
}

std::string epoch_text(const std::string& path) {
  return fmt::format("{:.1f}", read_checkpoint_header(path).progress.fractional_epoch());
}

/// The damage of a checkpoint; nothing for an undamaged checkpoint.
std::optional<std::string> problem_of(const std::string& path) {
  try {
    const auto damage = verify_checkpoint(path);
    return damage ? std::optional("damaged: " + *damage) : std::nullopt;
  } catch (const ReadError& error) {
    return error.what();
  }
}

Cells row_of(const CheckpointFolder& folder, int64_t step, bool is_newest,
             const MetricByStep& values) {
  const std::string path = folder.path_of(step);
  const std::optional<std::string> problem = problem_of(path);
  const auto value = values.find(step);
  std::string marks = is_newest ? "latest" : "";
  const auto mark = [&](const std::string& text) { marks += (marks.empty() ? "" : ", ") + text; };
  if (folder.best() == step) mark("best");
  if (problem) mark(*problem);
  return {with_thousands(step),
          problem ? kNoValue : epoch_text(path),
          size_text(static_cast<double>(fs::file_size(path))),
          value == values.end() ? kNoValue : short_number(value->second),
          age_text(path),
          marks};
}

/// The rows of all checkpoints, without checkpoints that a concurrent training removes.
std::vector<Cells> rows_of(const CheckpointFolder& folder, const std::vector<int64_t>& steps,
                           const MetricByStep& values) {
  std::vector<Cells> rows;
  for (const int64_t step : steps) {
    try {
      rows.push_back(row_of(folder, step, step == steps.back(), values));
    } catch (const std::exception&) {
      std::error_code failed;
      if (fs::exists(folder.path_of(step), failed)) throw;
    }
  }
  return rows;
}

int checkpoints_command(const Arguments& arguments, const NoFlags& /*own*/) {
  const RunDirectory run = open_run(arguments, arguments.operands.front());
  const CheckpointFolder folder(run.checkpoints());
  const std::vector<int64_t> steps = folder.steps();
  if (steps.empty()) {
    fmt::print("{}: the run has no checkpoints yet\n", run.root());
    return 0;
  }
  const std::string metric = metric_of(run);
  const MetricByStep values = read_metric(run.metrics_file(), metric);
  std::vector<TextTable::Column> columns = {{"step", true}, {"epoch", true}, {"size", true},
                                            {metric, true}, {"age"},         {""}};
  if (metric.empty()) columns.erase(columns.begin() + kMetric);
  TextTable table(columns);
  for (Cells cells : rows_of(folder, steps, values)) {
    if (metric.empty()) cells.erase(cells.begin() + kMetric);
    table.add(std::move(cells));
  }
  fmt::print("{}", table.text());
  return 0;
}

STEPOP_REGISTER_COMMAND(
    checkpoints_command, NoFlags,
    {.name = "checkpoints",
     .group = CommandGroup::kOneRun,
     .operands = "logs/<time>_<name>",
     .fewest = 1,
     .most = 1,
     .about = "the checkpoints of a run, with the latest, the best and damaged ones marked",
     .takes = "",
     .example = "stepop checkpoints logs/<time>_digits"});

}  // namespace

}  // namespace stepop
