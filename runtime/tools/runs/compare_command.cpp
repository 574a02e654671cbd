#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/report/code_changes.h"
#include "runtime/tools/report/config_table.h"
#include "runtime/tools/report/run_curves.h"
#include "runtime/tools/runs/compare_rows.h"
#include "runtime/tools/runs/compare_states.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {
namespace {

constexpr size_t kMostValue = 40;
/// With more runs, each run has a row, and not three columns.
constexpr size_t kMostSideBySide = 4;

/// Reads a run; reports unreadable parts on the standard error.
ComparedRun read_run(const RunDirectory& run, size_t i) {
  ComparedRun compared{.label = letter_of(i), .summary = summarize_run(run.root())};
  try {
    compared.config = resolve_config({run.last_config()}, {});
  } catch (const Error& error) {
    fmt::print(stderr, "stepop: {}: left out of the configs: {}\n", shown_text(run.root()),
               shown_text(error.what()));
  }
  try {
    compared.scalars = summarize_scalars(run.metrics_file());
    add_unlogged_scalars(run, compared.scalars);
  } catch (const Error& error) {
    fmt::print(stderr, "stepop: {}\n", shown_text(error.what()));
  }
  return compared;
}

void print_runs(const std::vector<ComparedRun>& runs) {
  TextTable table({{""}, {"run"}, {"state"}, {"step", true}, {"epoch", true}});
  for (const auto& [label, run, config, scalars] : runs) {
    table.add({label, run.root, run.status.text(), run.step ? with_thousands(*run.step) : kNoValue,
               run.epoch ? fmt::format("{:.1f}", *run.epoch) : kNoValue});
  }
  fmt::print("{}\n", table.text());
}

void print_configs(const std::vector<ComparedRun>& runs) {
  std::vector<Value> configs;
  std::vector<TextTable::Column> columns = {{"config"}};
  for (const auto& run : runs) {
    if (!run.config) continue;
    configs.push_back(*run.config);
    columns.push_back({run.label});
  }
  if (configs.size() < 2) return;
  TextTable table(columns);
  const std::vector<ConfigRow> rows = compare_configs(configs);
  for (const ConfigRow& row : rows) {
    std::vector<std::string> cells;
    for (const auto& value : row.values) cells.push_back(value.value_or(kNoValue));
    cells = shortened_names(cells, kMostValue);
    cells.insert(cells.begin(), row.path);
    table.add(std::move(cells));
  }
  if (rows.empty()) {
    fmt::print("The configs are the same.\n\n");
    return;
  }
  for (const TextTable& part : table.parts(kMostCompareWidth, 1)) fmt::print("{}\n", part.text());
}

void print_code(const std::vector<ComparedRun>& runs,
                const std::vector<RunDirectory>& directories) {
  std::vector<std::string> labels;
  for (const auto& run : runs) labels.push_back(run.label);
  const std::string text = describe_code_changes(labels, directories);
  if (!text.empty()) fmt::print("{}\n", text);
}

std::vector<std::string> scalar_names(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> names;
  for (const auto& run : runs) {
    for (const auto& [name, scalar] : run.scalars) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  // The task's own scalars come before the runtime's.
  std::ranges::stable_partition(names,
                                [](const auto& name) { return !name.starts_with("runtime/"); });
  return names;
}

std::string value_text(const std::optional<ScalarAt>& at) {
  return at ? short_number(at->value) : kNoValue;
}

std::string step_text(const std::optional<ScalarAt>& at) {
  return at ? with_thousands(at->step) : kNoValue;
}

MetricDirection direction_of(const std::string& name, const std::vector<ComparedRun>& runs) {
  MetricDirection better = MetricDirection::kUnknown;
  for (const auto& run : runs) {
    const Value* config = run.config ? &*run.config : nullptr;
    if (better == MetricDirection::kUnknown) better = metric_direction(name, config);
  }
  return better;
}

/// The scalars of `count` of the runs, side by side.
TextTable scalar_table(const std::vector<ComparedRun>& runs, size_t first, size_t count) {
  std::vector<TextTable::Column> columns = {{"metric"}, {"best is"}};
  for (size_t i = first; i < first + count; ++i) {
    columns.push_back({runs[i].label + " last", true});
    columns.push_back({"best", true});
    columns.push_back({"at step", true});
  }
  TextTable table(columns);
  for (const auto& name : scalar_names(runs)) {
    const MetricDirection better = direction_of(name, runs);
    std::vector<std::string> cells = {name, better == MetricDirection::kLower    ? "lowest"
                                            : better == MetricDirection::kHigher ? "highest"
                                                                                 : ""};
    for (size_t i = first; i < first + count; ++i) {
      const ScalarSummary* found = runs[i].scalars.find(name);
      const ScalarSummary scalar = found != nullptr ? *found : ScalarSummary{};
      const auto best = best_of(scalar, better);
      cells.push_back(value_text(scalar.last));
      cells.push_back(value_text(best));
      cells.push_back(step_text(best));
    }
    table.add(std::move(cells));
  }
  return table;
}

void print_scalars(const std::vector<ComparedRun>& runs) {
  if (scalar_names(runs).empty()) {
    fmt::print("None of them has logged a number yet.\n");
    return;
  }
  // Two runs are always side by side, more runs only if they fit.
  size_t at_once = runs.size();
  while (at_once > 2 && scalar_table(runs, 0, at_once).width() > kMostCompareWidth) --at_once;
  for (size_t first = 0; first < runs.size(); first += at_once) {
    const size_t count = std::min(at_once, runs.size() - first);
    fmt::print("{}{}", first > 0 ? "\n" : "", scalar_table(runs, first, count).text());
  }
}

/// Whether two runs should have the same bits, according to their configs.
bool have_same_configs(const ComparedRun& a, const ComparedRun& b) {
  return a.config && b.config && compare_configs({*a.config, *b.config}).empty();
}

/// Compares each run's checkpoints with the first run that has any; with many runs, only with the
/// first earlier run of the same config.
void print_states(const std::vector<ComparedRun>& runs,
                  const std::vector<RunDirectory>& directories) {
  const auto has_checkpoints = [](const RunDirectory& directory) {
    return !CheckpointFolder(directory.checkpoints()).steps().empty();
  };
  const bool are_many = runs.size() > kMostSideBySide;
  std::string text;
  std::vector<size_t> before;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!has_checkpoints(directories[i])) continue;
    const auto other = std::find_if(before.begin(), before.end(), [&](size_t k) {
      return !are_many || have_same_configs(runs[k], runs[i]);
    });
    if (other != before.end()) {
      text +=
          compare_states(runs[*other].label, directories[*other], runs[i].label, directories[i]) +
          "\n";
    }
    before.push_back(i);
  }
  if (!text.empty()) fmt::print("\n{}", text);
}

int compare_command(const Arguments& arguments, const NoFlags& /*own*/) {
  const std::vector<RunDirectory> directories = open_runs(arguments, arguments.operands);
  std::vector<ComparedRun> runs;
  for (size_t i = 0; i < directories.size(); ++i) runs.push_back(read_run(directories[i], i));
  if (runs.size() > kMostSideBySide) {
    fmt::print("{}", compare_rows_text(runs));
    print_code(runs, directories);
  } else {
    print_runs(runs);
    print_configs(runs);
    print_code(runs, directories);
    print_scalars(runs);
  }
  print_states(runs, directories);
  return 0;
}

STEPOP_REGISTER_COMMAND(
    compare_command, NoFlags,
    {.name = "compare",
     .group = CommandGroup::kManyRuns,
     .operands = "logs/a logs/b [...]",
     .fewest = 2,
     .most = 100,
     .about = "the differences between the configs of runs, and their metrics side by side",
     .takes = "project",
     .example = "stepop compare logs/*_a logs/*_b"});

}  // namespace

}  // namespace stepop
