#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/cli/commands.h"
#include "runtime/config/resolve.h"
#include "runtime/files/size_text.h"
#include "runtime/log/metrics_file.h"
#include "runtime/log/number_text.h"
#include "runtime/run/run_directory.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Cells = std::array<std::string, 6>;

constexpr const char* kNone = "-";

/// The run's folder; a UsageError when it is none.
RunDirectory open_run(const Arguments& arguments) {
  if (!arguments.base.empty() || !arguments.overrides.empty()) {
    throw UsageError("stepop checkpoints takes the folder of a run alone: " +
                     arguments.command->usage());
  }
  const std::string& root = arguments.operands.front();
  std::error_code failed;
  if (!fs::is_directory(root, failed)) {
    throw UsageError(
        fmt::format("stepop checkpoints: {}: no such folder; give the folder of a run, "
                    "logs/<time>_<name>",
                    root));
  }
  if (!fs::is_directory(root + "/configs", failed)) {
    throw UsageError(
        fmt::format("stepop checkpoints: {}: not the folder of a run: it has no configs/", root));
  }
  return RunDirectory::open(root);
}

/// `checkpoints/metric` of the run's newest config; empty when it names none. What is listed here
/// may be all that is left of a run, so a config that cannot be read is no reason to end.
std::string metric_of(const RunDirectory& run) {
  try {
    const Value config = resolve_config({run.last_config()}, {});
    const Value* metric = config.find("checkpoints/metric");
    return metric != nullptr && metric->is_text() ? metric->as_text() : "";
  } catch (const Error&) {
    return "";
  }
}

/// The values of one metric; the last one of a step counts.
MetricByStep read_metric(const std::string& path, const std::string& metric) {
  MetricByStep values;
  std::error_code failed;
  if (metric.empty() || !fs::exists(path, failed)) return values;
  for (const auto& line : read_metrics(path).lines) {
    const double* value = line.values.find(metric);
    if (value != nullptr) values[line.event.step] = *value;
  }
  return values;
}

std::string age_text(fs::file_time_type written) {
  const std::chrono::duration<double> passed = fs::file_time_type::clock::now() - written;
  return span_text(passed.count()) + " ago";
}

std::string epoch_text(const std::string& path) {
  const Progress progress = read_checkpoint_header(path).progress;
  auto epoch = static_cast<double>(progress.epoch);
  if (progress.batches_per_epoch > 0) {
    epoch += static_cast<double>(progress.batch) / static_cast<double>(progress.batches_per_epoch);
  }
  return fmt::format("{:.1f}", epoch);
}

Cells row_of(const CheckpointFolder& folder, int64_t step, bool is_newest,
             const MetricByStep& values) {
  const std::string path = folder.path_of(step);
  const std::optional<std::string> damage = verify_checkpoint(path);
  const auto value = values.find(step);
  std::string marks = is_newest ? "latest" : "";
  const auto mark = [&](const std::string& text) { marks += (marks.empty() ? "" : ", ") + text; };
  if (folder.best() == step) mark("best");
  if (damage) mark("damaged: " + *damage);
  return {with_thousands(step),
          damage ? kNone : epoch_text(path),
          size_text(static_cast<double>(fs::file_size(path))),
          value == values.end() ? kNone : short_number(value->second),
          age_text(fs::last_write_time(path)),
          marks};
}

/// The rows of all checkpoints; one that a training beside us removes meanwhile has none.
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

void print_table(const std::vector<Cells>& rows, bool with_metric) {
  constexpr size_t kMetric = 3;
  constexpr size_t kAge = 4;
  Cells::size_type widths[std::tuple_size_v<Cells>] = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == kMetric && !with_metric) continue;
      line += i < kAge ? fmt::format("{:>{}}  ", row[i], widths[i])
                       : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

}  // namespace

int checkpoints_command(const Arguments& arguments) {
  const RunDirectory run = open_run(arguments);
  const CheckpointFolder folder(run.checkpoints());
  const std::vector<int64_t> steps = folder.steps();
  if (steps.empty()) {
    fmt::print("{}: the run has no checkpoints yet\n", run.root());
    return 0;
  }
  const std::string metric = metric_of(run);
  const MetricByStep values = read_metric(run.metrics_file(), metric);
  std::vector<Cells> rows = {{"step", "epoch", "size", metric, "age", ""}};
  for (const Cells& row : rows_of(folder, steps, values)) rows.push_back(row);
  print_table(rows, !metric.empty());
  return 0;
}

}  // namespace stepop
