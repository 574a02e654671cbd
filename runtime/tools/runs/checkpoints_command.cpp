#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/core/base/json_text.h"
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

struct CheckpointsFlags {
  bool json = false;

  void add_to(Flags& flags) { flags.add("json", json, "the same as a JSON list, for programs"); }
};

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

double epoch_of(const std::string& path) {
  return read_checkpoint_header(path).progress.fractional_epoch();
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

struct ListedCheckpoint {
  int64_t step;
  std::string path;
  int64_t bytes;
  std::optional<double> epoch;  ///< Empty when the file is damaged.
  std::optional<double> metric;
  bool is_latest, is_best;
  std::optional<std::string> problem;
};

ListedCheckpoint listed(const CheckpointFolder& folder, int64_t step, bool is_newest,
                        const MetricByStep& values) {
  const std::string path = folder.path_of(step);
  const std::optional<std::string> problem = problem_of(path);
  const auto value = values.find(step);
  return {.step = step,
          .path = path,
          .bytes = static_cast<int64_t>(fs::file_size(path)),
          .epoch = problem ? std::nullopt : std::optional(epoch_of(path)),
          .metric = value == values.end() ? std::nullopt : std::optional(value->second),
          .is_latest = is_newest,
          .is_best = folder.best() == step,
          .problem = problem};
}

Cells row_of(const ListedCheckpoint& one) {
  std::string marks = one.is_latest ? "latest" : "";
  const auto mark = [&](const std::string& text) { marks += (marks.empty() ? "" : ", ") + text; };
  if (one.is_best) mark("best");
  if (one.problem) mark(*one.problem);
  return {with_thousands(one.step),
          one.epoch ? fmt::format("{:.1f}", *one.epoch) : kNoValue,
          size_text(static_cast<double>(one.bytes)),
          one.metric ? short_number(*one.metric) : kNoValue,
          age_text(one.path),
          marks};
}

/// `metric` is null without a value, and where the value is no number of JSON.
nlohmann::ordered_json json_of(const ListedCheckpoint& one) {
  using Json = nlohmann::ordered_json;
  return {{"step", one.step},
          {"path", one.path},
          {"bytes", one.bytes},
          {"epoch", one.epoch ? Json(*one.epoch) : Json()},
          {"metric", one.metric ? Json(*one.metric) : Json()},
          {"latest", one.is_latest},
          {"best", one.is_best},
          {"problem", one.problem ? Json(*one.problem) : Json()}};
}

/// All checkpoints, without those that a concurrent training removes.
std::vector<ListedCheckpoint> list_checkpoints(const CheckpointFolder& folder,
                                               const std::vector<int64_t>& steps,
                                               const MetricByStep& values) {
  std::vector<ListedCheckpoint> rows;
  for (const int64_t step : steps) {
    try {
      rows.push_back(listed(folder, step, step == steps.back(), values));
    } catch (const std::exception&) {
      std::error_code failed;
      if (fs::exists(folder.path_of(step), failed)) throw;
    }
  }
  return rows;
}

int checkpoints_command(const Arguments& arguments, const CheckpointsFlags& own) {
  const RunDirectory run = open_run(arguments, arguments.operands.front());
  const CheckpointFolder folder(run.checkpoints());
  const std::vector<int64_t> steps = folder.steps();
  if (steps.empty() && !own.json) {
    fmt::print("{}: the run has no checkpoints yet\n", run.root());
    return 0;
  }
  const std::string metric = metric_of(run);
  const MetricByStep values = read_metric(run.metrics_file(), metric);
  const auto all = list_checkpoints(folder, steps, values);
  if (own.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& one : all) list.push_back(json_of(one));
    fmt::print("{}\n", write_json(list, 2));
    return 0;
  }
  std::vector<TextTable::Column> columns = {{"step", true}, {"epoch", true}, {"size", true},
                                            {metric, true}, {"age"},         {""}};
  if (metric.empty()) columns.erase(columns.begin() + kMetric);
  TextTable table(columns);
  for (const auto& one : all) {
    Cells cells = row_of(one);
    if (metric.empty()) cells.erase(cells.begin() + kMetric);
    table.add(std::move(cells));
  }
  fmt::print("{}", table.text());
  return 0;
}

STEPOP_REGISTER_COMMAND(
    checkpoints_command, CheckpointsFlags,
    {.name = "checkpoints",
     .group = CommandGroup::kOneRun,
     .operands = "logs/<time>_<name>",
     .fewest = 1,
     .most = 1,
     .about = "the checkpoints of a run, with the latest, the best and damaged ones marked",
     .takes = "project",
     .example = "stepop checkpoints logs/<time>_digits"});

}  // namespace

}  // namespace stepop
