#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/value/value.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/runs/run_filter.h"
#include "runtime/tools/start/run_starts.h"
#include "runtime/tools/sweep/sweep_plan.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {
namespace {

struct RunsFlags {
  RunFilter filter;
  bool json = false;
  bool csv = false;
  bool commands = false;
  std::optional<std::string> best;
  std::optional<std::string> sort;
  std::vector<std::string> show;

  void add_to(Flags& flags) {
    flags.add({'n', "name"}, filter.name, "only runs whose name has this in it");
    flags.add("state", filter.state,
              "only those: running, ended, stopped, failed, killed or unknown");
    flags.add("where", filter.where,
              "only those whose config fits: optimizer/lr=1e-3; also !=, <, <=, >, >=; repeat for "
              "more");
    flags.add("best", best, "show and sort by this number, whichever it is: the best run first");
    flags.add("show", show, "columns for keys of the config: --show optimizer/lr seed",
              Flag::Takes::kValues);
    flags.add("sort", sort, "by name (default), state, step, last, best or age");
    flags.add("json", json, "all values as a JSON list, for programs");
    flags.add("csv", csv, "all values as CSV");
    flags.add("commands", commands,
              "also the process and the command line of each run's newest start");
  }
};

namespace fs = std::filesystem;

constexpr size_t kMostColumns = 100;
constexpr size_t kLeastName = 20;

std::string metric_text(const std::optional<double>& number) {
  return number ? short_number(*number) : kNoValue;
}

std::string epoch_text(const RunSummary& run) {
  if (!run.epoch) return kNoValue;
  const std::string epoch = fmt::format("{:.1f}", *run.epoch);
  return run.num_epochs ? fmt::format("{}/{}", epoch, short_number(*run.num_epochs)) : epoch;
}

std::vector<RunSummary> find_runs(const Arguments& arguments, bool is_for_programs) {
  const std::string folder = arguments.operands.empty() ? "logs" : arguments.operands.front();
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    throw UsageError(fmt::format("stepop runs: {}: no such folder; give one with runs in it: {}",
                                 folder, arguments.command->usage()));
  }
  if (is_run(folder)) return {summarize_run(folder)};
  std::vector<RunSummary> runs = list_runs(folder, arguments.debug);
  if (!runs.empty() || is_for_programs) return runs;
  const std::vector<std::string> sweeps = find_sweeps(folder);
  if (!sweeps.empty()) return {};  // the sweeps are listed below
  const bool has_debug = !arguments.debug && fs::is_directory(folder + "/debug_runs", failed);
  fmt::print("{}: no runs in this folder{}\n", folder,
             has_debug ? " but those of -d in debug_runs/: stepop runs -d lists them" : "");
  return {};
}

/// The columns of the table; columns without any value are left out.
struct Shown {
  bool with_best = false;
  bool with_last = false;
  /// The metrics for which runs have a value. Several metrics get letters, which are explained
  /// below the table, since their names are long.
  std::vector<std::string> metrics = {};
  std::vector<std::string> keys = {};  ///< The config keys of --show.

  bool with_letters() const { return metrics.size() > 1; }
};

Shown shown_of(const std::vector<RunSummary>& runs, const std::vector<std::string>& keys) {
  Shown shown{.keys = keys};
  for (const auto& run : runs) {
    shown.with_best = shown.with_best || run.best;
    shown.with_last = shown.with_last || run.last;
    const bool is_known =
        std::find(shown.metrics.begin(), shown.metrics.end(), run.metric) != shown.metrics.end();
    if ((run.last || run.best) && !is_known) shown.metrics.push_back(run.metric);
  }
  return shown;
}

/// The value of a config key in a cell.
std::string cell_of_key(const RunSummary& run, const std::string& key) {
  const Value* value = run.config.find(key);
  return value == nullptr || value->is_null() ? kNoValue : flow_yaml(*value);
}

/// Empty for a metric without values.
std::string letter_of(const Shown& shown, const std::string& metric) {
  const auto found = std::find(shown.metrics.begin(), shown.metrics.end(), metric);
  if (found == shown.metrics.end()) return "";
  return stepop::letter_of(static_cast<size_t>(found - shown.metrics.begin()));
}

TextTable table_of(const std::vector<RunSummary>& runs, const Shown& shown,
                   const std::vector<std::string>& names) {
  std::vector<TextTable::Column> columns = {{"run"}, {"state"}, {"step", true}, {"epoch", true}};
  std::vector<std::vector<std::string>> values;
  for (const auto& title : short_paths(shown.keys)) columns.push_back({title});
  for (const auto& key : shown.keys) {
    std::vector<std::string>& cells = values.emplace_back();
    for (const auto& run : runs) cells.push_back(cell_of_key(run, key));
    cells = shortened_names(cells, kLeastName);
  }
  if (shown.with_last) columns.push_back({"last", true});
  if (shown.with_best) columns.push_back({"best", true});
  if (shown.with_letters()) columns.push_back({"of"});
  columns.push_back({"age"});
  TextTable table(columns);
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunSummary& run = runs[i];
    std::vector<std::string> cells = {names[i], run.status.text(),
                                      run.step ? with_thousands(*run.step) : kNoValue,
                                      epoch_text(run)};
    for (const auto& column : values) cells.push_back(column[i]);
    if (shown.with_last) cells.push_back(metric_text(run.last));
    if (shown.with_best) cells.push_back(metric_text(run.best));
    if (shown.with_letters()) cells.push_back(letter_of(shown, run.metric));
    cells.push_back(span_text(run.age) + " ago");
    table.add(std::move(cells));
  }
  return table;
}

/// The widest table that fits, with names shortened if needed; if none fits, several tables.
std::string fitting_table(const std::vector<RunSummary>& runs, const Shown& shown) {
  std::vector<std::string> names;
  size_t longest = 0;
  for (const auto& run : runs) {
    names.push_back(run.name);
    longest = std::max(longest, text_width(run.name));
  }
  for (size_t most = longest; most >= kLeastName; --most) {
    const TextTable table = table_of(runs, shown, shortened_names(names, most));
    if (table.width() <= kMostColumns) return table.text();
  }
  std::string text;
  for (const TextTable& part : table_of(runs, shown, names).parts(kMostColumns, 1)) {
    text += (text.empty() ? "" : "\n") + part.text();
  }
  return text;
}

/// The command line of the run's newest start; empty when it is unknown.
std::string command_of(const RunSummary& run) {
  if (run.root.empty()) return "";
  const RunDirectory directory = RunDirectory::at(run.root);
  std::vector<KnownStart> starts = trainings_of(directory);
  if (starts.empty()) starts = evaluations_of(directory);
  return starts.empty() ? "" : starts.back().command;
}

/// `<run>, running vm:7354 since ...: <command>`, a line for each run.
void print_commands(const std::vector<RunSummary>& runs) {
  fmt::print("\n");
  for (const auto& run : runs) {
    const std::string command = command_of(run);
    const std::string since = run.status.state == RunState::kRunning
                                  ? " since " + run.status.process.started
                                  : std::string();
    fmt::print("{}, {}{}\n  {}\n", run.name, run.status.text(), since,
               command.empty() ? "no command line is known" : command);
  }
}

template <class T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// All known facts about a run, by column name, and the keys of --show. NaN and infinity are null.
nlohmann::ordered_json values_of(const RunSummary& run, const std::vector<std::string>& keys,
                                 bool with_commands) {
  using Json = nlohmann::ordered_json;
  Json values = {{"run", run.name},
                 {"folder", run.root},
                 {"state", run.status.text()},
                 {"step", json_of(run.step)},
                 {"epoch", json_of(run.epoch)},
                 {"num_epochs", json_of(run.num_epochs)},
                 {"metric", run.metric},
                 {"last", json_of(run.last)},
                 {"best", json_of(run.best)},
                 {"age_seconds", run.age}};
  if (with_commands) {
    values["pid"] = run.status.process.pid > 0 ? Json(run.status.process.pid) : Json();
    values["host"] = run.status.process.host;
    values["command"] = command_of(run);
  }
  for (const auto& key : keys) {
    const Value* value = run.config.find(key);
    Json json = value != nullptr ? try_read_ordered_json(to_json(*value)) : Json();
    values[key] = json.is_discarded() ? Json(flow_yaml(*value)) : std::move(json);  // infinity
  }
  return values;
}

std::string json_text_of(const std::vector<RunSummary>& runs, const std::vector<std::string>& keys,
                         bool with_commands) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& run : runs) list.push_back(values_of(run, keys, with_commands));
  return write_json(list, 2) + "\n";
}

std::string csv_cell_of(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  return csv_cell(value.is_string() ? value.get<std::string>() : write_json(value));
}

std::string csv_text_of(const std::vector<RunSummary>& runs, const std::vector<std::string>& keys,
                        bool with_commands) {
  std::string text;
  const auto names = values_of({}, keys, with_commands);
  for (const auto& [key, value] : names.items()) text += (text.empty() ? "" : ",") + csv_cell(key);
  text += "\n";
  for (const auto& run : runs) {
    std::string line;
    bool is_first = true;
    const auto values = values_of(run, keys, with_commands);
    for (const auto& [key, value] : values.items()) {
      line += (std::exchange(is_first, false) ? "" : ",") + csv_cell_of(value);
    }
    text += line + "\n";
  }
  return text;
}

/// Sorts the best first, in the metric's direction; runs without a value or with NaN come last.
/// Only values of one metric compare: runs with another metric than the first run's come last too.
template <class Value>
void sort_by_metric(std::vector<RunSummary>& runs, const Value& value) {
  const auto has_number = [&](const RunSummary& run) {
    return value(run) && !std::isnan(*value(run));
  };
  const auto found = std::find_if(runs.begin(), runs.end(), has_number);
  if (found == runs.end()) return;
  const std::string metric = found->metric;
  const bool more_is_better = found->more_is_better;
  std::stable_sort(runs.begin(), runs.end(), [&](const RunSummary& a, const RunSummary& b) {
    const bool has_a = has_number(a) && a.metric == metric;
    const bool has_b = has_number(b) && b.metric == metric;
    if (!has_a || !has_b) return has_a > has_b;
    return more_is_better ? *value(a) > *value(b) : *value(a) < *value(b);
  });
}

void sort_runs(std::vector<RunSummary>& runs, const std::string& key) {
  const auto by = [&](const auto& value) {
    std::stable_sort(runs.begin(), runs.end(),
                     [&](const auto& a, const auto& b) { return value(a) < value(b); });
  };
  if (key == "name") return;  // already sorted, newest first
  if (key == "state") return by([](const auto& run) { return run.status.text(); });
  if (key == "step") return by([](const auto& run) { return -run.step.value_or(-1); });
  if (key == "age") return by([](const auto& run) { return run.age; });
  if (key == "last") return sort_by_metric(runs, [](const auto& run) { return run.last; });
  if (key == "best") return sort_by_metric(runs, [](const auto& run) { return run.best; });
  throw UsageError(
      fmt::format("stepop runs: --sort {}: expected name, state, step, last, best or age", key));
}

/// Prints the sweeps in the folder; their runs are listed when the sweep's folder is given.
void print_sweeps(const Arguments& arguments) {
  const std::string folder = arguments.operands.empty() ? "logs" : arguments.operands.front();
  for (const auto& sweep : find_sweeps(folder)) {
    fmt::print("a sweep with runs of its own: {}\n", sweep);
  }
}

int runs_command(const Arguments& arguments, const RunsFlags& own) {
  if (own.json && own.csv) throw UsageError("stepop runs: --json and --csv: give one");
  std::vector<RunSummary> runs = find_runs(arguments, own.json || own.csv);
  const bool has_runs = !runs.empty();
  filter_runs(runs, own.filter);
  if (own.best) show_metric(runs, *own.best);
  if (own.best || own.sort) sort_runs(runs, own.sort.value_or("best"));
  if (own.json) {
    fmt::print("{}", json_text_of(runs, own.show, own.commands));
    return 0;
  }
  if (own.csv) {
    fmt::print("{}", csv_text_of(runs, own.show, own.commands));
    return 0;
  }
  if (runs.empty()) {
    if (has_runs) fmt::print("no run here is what is asked for\n");
    print_sweeps(arguments);
    return 0;
  }
  const Shown shown = shown_of(runs, own.show);
  fmt::print("{}", fitting_table(runs, shown));
  for (const auto& metric : shown.metrics) {
    const std::string letter = letter_of(shown, metric);
    fmt::print("{}: {}\n",
               shown.with_letters() ? letter
               : shown.with_best    ? "last, best"
                                    : "last",
               metric);
  }
  if (own.commands) print_commands(runs);
  print_sweeps(arguments);
  return 0;
}

STEPOP_REGISTER_COMMAND(
    runs_command, RunsFlags,
    {.name = "runs",
     .group = CommandGroup::kManyRuns,
     .operands = "[logs] [--best METRIC] [--where KEY=VALUE] [--json | --csv]",
     .fewest = 0,
     .most = 1,
     .about = "the runs in a folder: state, step, metric, age; -d also lists debug runs",
     .takes = "project debug",
     .example = "stepop runs --best accuracy --where optimizer/class=Adam --show optimizer/lr",
     .meanings = "debug: also the runs of -d, which lie in debug_runs/\n"
                 "project: one run, or a folder of runs; the word alone does"});

}  // namespace

}  // namespace stepop
