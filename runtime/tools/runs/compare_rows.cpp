#include "runtime/tools/runs/compare_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/tools/report/config_table.h"

namespace stepop {
namespace {

constexpr size_t kMostName = 36;
constexpr size_t kMostConfigCell = 24;

/// A table's columns with their cells.
class TableColumns {
 public:
  void add(const std::string& title, bool is_right, std::vector<std::string> cells) {
    titles_.push_back({title, is_right});
    cells_.push_back(std::move(cells));
  }

  std::string text() const {
    TextTable table(titles_);
    for (size_t row = 0; row < cells_.front().size(); ++row) {
      std::vector<std::string> line;
      for (const auto& column : cells_) line.push_back(column[row]);
      table.add(std::move(line));
    }
    std::string text;
    for (const TextTable& part : table.parts(kMostCompareWidth, 1)) {
      text += (text.empty() ? "" : "\n") + part.text();
    }
    return text;
  }

 private:
  std::vector<TextTable::Column> titles_;
  std::vector<std::vector<std::string>> cells_;
};

/// The texts that `text` returns for each run.
template <class Text>
std::vector<std::string> cells_of(const std::vector<ComparedRun>& runs, const Text& text) {
  std::vector<std::string> cells;
  for (const auto& run : runs) cells.push_back(text(run));
  return cells;
}

/// The metrics that lists of the runs show, without duplicates.
std::vector<std::string> main_metrics(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> names;
  for (const auto& run : runs) {
    const std::string& name = run.summary.metric;
    const bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (is_new && run.scalars.contains(name)) names.push_back(name);
  }
  return names;
}

/// Adds the metric's columns; returns the line that explains them.
std::string add_metric(const std::vector<ComparedRun>& runs, const std::string& name,
                       const std::string& label, TableColumns& columns) {
  MetricDirection better = MetricDirection::kUnknown;
  for (const auto& run : runs) {
    const Value* config = run.config ? &*run.config : nullptr;
    if (better == MetricDirection::kUnknown) better = metric_direction(name, config);
  }
  const auto scalar_of = [&](const ComparedRun& run) {
    const ScalarSummary* found = run.scalars.find(name);
    return found != nullptr ? *found : ScalarSummary{};
  };
  const auto number = [](const std::optional<ScalarAt>& at) {
    return at ? short_number(at->value) : kNoValue;
  };
  columns.add(label + "last", true,
              cells_of(runs, [&](const auto& run) { return number(scalar_of(run).last); }));
  if (better == MetricDirection::kUnknown) return fmt::format("{}last: {}\n", label, name);
  columns.add(label + "best", true, cells_of(runs, [&](const auto& run) {
                return number(best_of(scalar_of(run), better));
              }));
  columns.add("at step", true, cells_of(runs, [&](const auto& run) {
                const auto best = best_of(scalar_of(run), better);
                return best ? with_thousands(best->step) : kNoValue;
              }));
  return fmt::format("{}last, {}best: {}, {} is best\n", label, label, name,
                     better == MetricDirection::kHigher ? "highest" : "lowest");
}

/// Returns whether any configs differ.
bool add_configs(const std::vector<ComparedRun>& runs, TableColumns& columns) {
  std::vector<Value> configs;
  for (const auto& run : runs) {
    if (run.config) configs.push_back(*run.config);
  }
  if (configs.size() < 2) return true;
  const std::vector<ConfigRow> rows = compare_configs(configs);
  std::vector<std::string> paths;
  for (const auto& row : rows) paths.push_back(row.path);
  const std::vector<std::string> titles = short_paths(paths);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> values;
    for (const auto& value : rows[i].values) values.push_back(value.value_or(kNoValue));
    values = shortened_names(values, kMostConfigCell);
    size_t place = 0;
    columns.add(titles[i], false, cells_of(runs, [&](const auto& run) {
                  return run.config ? values[place++] : std::string("?");
                }));
  }
  return !rows.empty();
}

}  // namespace

std::string compare_rows_text(const std::vector<ComparedRun>& runs) {
  TableColumns columns;
  columns.add("", false, cells_of(runs, [](const auto& run) { return run.label; }));
  columns.add(
      "run", false,
      shortened_names(cells_of(runs, [](const auto& run) { return run.summary.name; }), kMostName));
  columns.add("state", false,
              cells_of(runs, [](const auto& run) { return run.summary.status.text(); }));
  columns.add("step", true, cells_of(runs, [](const auto& run) {
                return run.summary.step ? with_thousands(*run.summary.step) : kNoValue;
              }));
  const std::vector<std::string> metrics = main_metrics(runs);
  std::string below;
  for (size_t i = 0; i < metrics.size(); ++i) {
    below += add_metric(runs, metrics[i], metrics.size() > 1 ? fmt::format("({}) ", i + 1) : "",
                        columns);
  }
  const bool differs = add_configs(runs, columns);
  OrderedMap<bool> names;
  for (const auto& run : runs) {
    for (const auto& [name, scalar] : run.scalars) names.set(name, true);
  }
  if (!differs) below += "The configs are the same.\n";
  if (names.empty()) below += "None of them has logged a number yet.\n";
  if (names.size() > metrics.size()) {
    const size_t others = names.size() - metrics.size();
    below += fmt::format("{}: stepop compare A B shows all numbers of two runs\n",
                         counted(others, "other number"));
  }
  return columns.text() + below;
}

}  // namespace stepop
