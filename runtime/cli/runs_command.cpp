#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/number_text.h"
#include "runtime/base/text.h"
#include "runtime/base/text_table.h"
#include "runtime/cli/commands.h"
#include "runtime/run/run_summary.h"

namespace stepop {
namespace {

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
  /// The metrics that runs have a value of. Several are named by a letter, which is explained below
  /// the table: their names are long.
  std::vector<std::string> metrics = {};

  bool with_letters() const { return metrics.size() > 1; }
};

Shown shown_of(const std::vector<RunSummary>& runs) {
  Shown shown;
  for (const auto& run : runs) {
    shown.with_best = shown.with_best || run.best;
    shown.with_last = shown.with_last || run.last;
    const bool is_known =
        std::find(shown.metrics.begin(), shown.metrics.end(), run.metric) != shown.metrics.end();
    if ((run.last || run.best) && !is_known) shown.metrics.push_back(run.metric);
  }
  return shown;
}

/// Empty for a metric that no run has a value of.
std::string letter_of(const Shown& shown, const std::string& metric) {
  const auto found = std::find(shown.metrics.begin(), shown.metrics.end(), metric);
  if (found == shown.metrics.end()) return "";
  return stepop::letter_of(static_cast<size_t>(found - shown.metrics.begin()));
}

TextTable table_of(const std::vector<RunSummary>& runs, const Shown& shown,
                   const std::vector<std::string>& names) {
  std::vector<TextTable::Column> columns = {{"run"}, {"state"}, {"step", true}, {"epoch", true}};
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
    if (shown.with_last) cells.push_back(metric_text(run.last));
    if (shown.with_best) cells.push_back(metric_text(run.best));
    if (shown.with_letters()) cells.push_back(letter_of(shown, run.metric));
    cells.push_back(span_text(run.age) + " ago");
    table.add(std::move(cells));
  }
  return table;
}

/// The widest table that fits, names cut where it must be; the whole one when none does.
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
  return table_of(runs, shown, names).text();
}

}  // namespace

int runs_command(const Arguments& arguments) {
  refuse_config(arguments, "a folder");
  const std::vector<RunSummary> runs = find_runs(arguments);
  if (runs.empty()) return 0;
  const Shown shown = shown_of(runs);
  fmt::print("{}", fitting_table(runs, shown));
  for (const auto& metric : shown.metrics) {
    const std::string letter = letter_of(shown, metric);
    fmt::print("{}: {}\n",
               shown.with_letters() ? letter
               : shown.with_best    ? "last, best"
                                    : "last",
               metric);
  }
  return 0;
}

}  // namespace stepop
