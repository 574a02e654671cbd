#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/cli/run_operand.h"
#include "runtime/log/number_text.h"
#include "runtime/log/text_table.h"
#include "runtime/run/run_summary.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNone = "-";
constexpr size_t kMostColumns = 100;
constexpr size_t kLeastName = 20;

std::string number_text(const std::optional<double>& number) {
  return number ? short_number(*number) : kNone;
}

std::string epoch_text(const RunSummary& run) {
  if (!run.epoch) return kNone;
  const std::string epoch = fmt::format("{:.1f}", *run.epoch);
  return run.num_epochs ? fmt::format("{}/{}", epoch, short_number(*run.num_epochs)) : epoch;
}

std::vector<RunSummary> find_runs(const Arguments& arguments) {
  const std::string folder = arguments.operands.empty() ? "logs" : arguments.operands.front();
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    throw UsageError(fmt::format("stepop runs: {}: no such folder; give one with runs in it: {}",
                                 folder, arguments.command->usage()));
  }
  if (is_run(folder)) return {summarize_run(folder)};
  std::vector<RunSummary> runs = list_runs(folder, arguments.debug);
  if (!runs.empty()) return runs;
  const bool has_debug = !arguments.debug && fs::is_directory(folder + "/debug_runs", failed);
  fmt::print("{}: no runs in this folder{}\n", folder,
             has_debug ? " but those of -d in debug_runs/: stepop runs -d lists them" : "");
  return {};
}

/// Which columns there are: those that no run has a value for are left out.
struct Shown {
  bool with_best = false;
  bool with_last = false;
  bool with_metric = false;  ///< The runs have different ones; else it is told below the table.
};

TextTable table_of(const std::vector<RunSummary>& runs, const Shown& shown,
                   const std::vector<std::string>& names, const std::vector<std::string>& metrics) {
  std::vector<TextTable::Column> columns = {{"run"}, {"state"}, {"step", true}, {"epoch", true}};
  if (shown.with_last) columns.push_back({"last", true});
  if (shown.with_best) columns.push_back({"best", true});
  if (shown.with_metric) columns.push_back({"metric"});
  columns.push_back({"age"});
  TextTable table(columns);
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunSummary& run = runs[i];
    std::vector<std::string> cells = {
        names[i], run.status.text(), run.step ? with_thousands(*run.step) : kNone, epoch_text(run)};
    if (shown.with_last) cells.push_back(number_text(run.last));
    if (shown.with_best) cells.push_back(number_text(run.best));
    if (shown.with_metric) cells.push_back(metrics[i]);
    cells.push_back(span_text(run.age) + " ago");
    table.add(std::move(cells));
  }
  return table;
}

/// The widest table that fits: where it must be, metrics are cut, then the names of runs. The whole
/// one when none does.
std::string fitting_table(const std::vector<RunSummary>& runs, const Shown& shown) {
  std::vector<std::string> names;
  std::vector<std::string> metrics;
  size_t longest_name = kLeastName;
  size_t longest_metric = kLeastName;
  for (const auto& run : runs) {
    names.push_back(run.name);
    metrics.push_back(run.metric.empty() ? kNone : run.metric);
    longest_name = std::max(longest_name, text_width(run.name));
    longest_metric = std::max(longest_metric, text_width(run.metric));
  }
  for (size_t cut = 0; cut <= longest_name + longest_metric - 2 * kLeastName; ++cut) {
    const size_t of_metric = std::min(cut, longest_metric - kLeastName);
    const TextTable table =
        table_of(runs, shown, shortened(names, longest_name - (cut - of_metric)),
                 shortened(metrics, longest_metric - of_metric));
    if (table.width() <= kMostColumns) return table.text();
  }
  return table_of(runs, shown, names, metrics).text();
}

}  // namespace

int runs_command(const Arguments& arguments) {
  refuse_config(arguments, "a folder");
  const std::vector<RunSummary> runs = find_runs(arguments);
  if (runs.empty()) return 0;
  Shown shown;
  std::set<std::string> metrics;
  for (const auto& run : runs) {
    shown.with_best = shown.with_best || run.best;
    shown.with_last = shown.with_last || run.last;
    if (run.last || run.best) metrics.insert(run.metric);
  }
  shown.with_metric = metrics.size() > 1;
  fmt::print("{}", fitting_table(runs, shown));
  if (metrics.size() == 1) {
    fmt::print("{}: {}\n", shown.with_best ? "last, best" : "last", *metrics.begin());
  }
  return 0;
}

}  // namespace stepop
