#include "runtime/tools/sweep/sweep_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostWidth = 100;
constexpr size_t kMostCell = 40;

bool is_over(const SweepPlan& plan, const std::string& path) {
  return std::find(plan.over().begin(), plan.over().end(), path) != plan.over().end();
}

/// The keys in which groups differ.
std::vector<std::string> group_keys(const SweepPlan& plan) {
  std::vector<std::string> keys = plan.keys();
  std::erase_if(keys, [&](const std::string& path) { return is_over(plan, path); });
  return keys;
}

std::string cell_of(const std::optional<double>& number) {
  return number ? short_number(*number) : kNoValue;
}

/// `1 failed, 2 waiting`
std::string others_text(const SweepGroup& group, const SweepResults& results) {
  OrderedMap<int> counts;
  for (const size_t i : group.runs) {
    if (!results.runs[i].has_ended()) ++counts[results.runs[i].state];
  }
  if (group.runs.size() == 1 && !counts.empty()) return counts.begin()->first;
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(fmt::format("{} {}", count, state));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// One column's cells for all groups: a config's values, with long values cut.
std::vector<std::string> value_cells(const std::vector<SweepGroup>& groups,
                                     const std::string& path) {
  std::vector<std::string> cells;
  for (const auto& group : groups) {
    const Value* value = group.values.find(path);
    cells.push_back(value == nullptr ? kNoValue : flow_yaml(*value));
  }
  return shortened_names(cells, kMostCell);
}

bool is_number(const Value& value) { return value.is_int() || value.is_float(); }

TextTable table_with(const SweepPlan& plan, const SweepResults& results,
                     const std::vector<SweepGroup>& groups,
                     const std::vector<std::string>& titles) {
  const bool has_over = !plan.over().empty();
  const bool has_best = results.metric.direction != MetricDirection::kUnknown;
  const bool has_others = std::any_of(groups.begin(), groups.end(), [](const SweepGroup& group) {
    return group.ended < group.runs.size();
  });
  const std::vector<std::string> keys = group_keys(plan);
  std::vector<TextTable::Column> columns;
  std::vector<std::vector<std::string>> cells;
  if (!has_over) {
    columns.push_back({"run"});
    for (const auto& group : groups) {
      if (cells.empty()) cells.emplace_back();
      cells.back().push_back(number_name(results.runs[group.runs.front()].run.number));
    }
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    const bool all_numbers =
        std::all_of(groups.begin(), groups.end(), [&](const SweepGroup& group) {
          const Value* value = group.values.find(keys[k]);
          return value != nullptr && is_number(*value);
        });
    columns.push_back({titles[k], all_numbers});
    cells.push_back(value_cells(groups, keys[k]));
  }
  const auto add_column = [&](const std::string& title, const auto& text) {
    columns.push_back({title, true});
    cells.emplace_back();
    for (const auto& group : groups) cells.back().push_back(text(group));
  };
  if (has_over)
    add_column("runs", [](const SweepGroup& group) { return std::to_string(group.ended); });
  const auto add_spread = [&](const std::string& title, Spread SweepGroup::*spread) {
    add_column(title, [&](const SweepGroup& group) { return cell_of((group.*spread).mean); });
    if (!has_over) return;
    add_column("sd", [&](const SweepGroup& group) { return cell_of((group.*spread).deviation); });
  };
  if (has_best) add_spread("best", &SweepGroup::best);
  add_spread("last", &SweepGroup::last);
  if (has_others) {
    add_column("not ended", [&](const SweepGroup& group) { return others_text(group, results); });
    columns.back().is_right = false;
  }
  TextTable table(columns);
  for (size_t row = 0; row < groups.size(); ++row) {
    std::vector<std::string> line;
    for (const auto& column : cells) line.push_back(column[row]);
    table.add(std::move(line));
  }
  return table;
}

Json json_value(const Value& value) {
  Json json = try_read_ordered_json(to_json(value));
  return json.is_discarded() ? Json(flow_yaml(value)) : json;  // infinities
}

Json json_values(const Value::Map& values) {
  Json json = Json::object();
  for (const auto& [path, value] : values) json[path] = json_value(value);
  return json;
}

template <class T>
Json json_of_optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

/// The numbers of a group, by their names in JSON and CSV.
Json numbers_of(const SweepGroup& group) {
  return {{"runs", group.runs.size()},
          {"ended", group.ended},
          {"best", json_of_optional(group.best.mean)},
          {"best_sd", json_of_optional(group.best.deviation)},
          {"last", json_of_optional(group.last.mean)},
          {"last_sd", json_of_optional(group.last.deviation)}};
}

const char* mode_of(MetricDirection direction) {
  if (direction == MetricDirection::kUnknown) return "";
  return direction == MetricDirection::kHigher ? "max" : "min";
}

/// NaN becomes an empty cell, which CSV readers take for a missing value.
std::string number_cell(const Json& value) {
  return value.is_null() || (value.is_number_float() && std::isnan(value.get<double>()))
             ? ""
             : write_json(value);
}

}  // namespace

Spread spread_of(const std::vector<double>& numbers) {
  if (numbers.empty()) return {};
  const auto n = static_cast<double>(numbers.size());
  double mean = 0;
  for (const double number : numbers) mean += number / n;
  if (numbers.size() < 2) return {mean, std::nullopt};
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return {mean, std::sqrt(squares / (n - 1))};
}

std::vector<SweepGroup> group_results(const SweepPlan& plan, const SweepResults& results) {
  OrderedMap<SweepGroup> by_values;
  for (size_t i = 0; i < results.runs.size(); ++i) {
    Value::Map values = results.runs[i].run.values;
    values.erase_if([&](const auto& entry) { return is_over(plan, entry.first); });
    SweepGroup& group = by_values[flow_yaml(values)];
    group.values = std::move(values);
    group.runs.push_back(i);
  }
  std::vector<SweepGroup> groups;
  for (auto& [name, group] : by_values) {
    std::vector<double> best;
    std::vector<double> last;
    bool has_nan = false;  // in all values of a run
    for (const size_t i : group.runs) {
      const SweepResult& result = results.runs[i];
      group.ended += result.has_ended() ? 1 : 0;
      // A mean only uses ended runs; a single run also shows its progress.
      if (!result.has_ended() && !plan.over().empty()) continue;
      if (result.best) best.push_back(*result.best);
      has_nan = has_nan || (!result.best && result.last && std::isnan(*result.last));
      if (result.last) last.push_back(*result.last);
    }
    // A mean without such a run would rank the point above those that are never NaN.
    if (has_nan && !best.empty()) best.push_back(NAN);
    group.best = spread_of(best);
    group.last = spread_of(last);
    groups.push_back(std::move(group));
  }
  if (results.metric.direction == MetricDirection::kUnknown) return groups;
  const double sign = results.metric.direction == MetricDirection::kHigher ? -1 : 1;
  const auto rank = [&](const SweepGroup& group) {
    const double value = group.best.mean.value_or(group.last.mean.value_or(NAN));
    return std::pair(std::isnan(value), std::isnan(value) ? 0 : sign * value);
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const SweepGroup& a, const SweepGroup& b) { return rank(a) < rank(b); });
  return groups;
}

std::string sweep_table_text(const SweepPlan& plan, const SweepResults& results) {
  const std::vector<SweepGroup> groups = group_results(plan, results);
  const std::vector<std::string> keys = group_keys(plan);
  TextTable table = table_with(plan, results, groups, keys);
  if (table.width() > kMostWidth) table = table_with(plan, results, groups, short_paths(keys));
  std::string text;
  for (const TextTable& part : table.parts(kMostWidth, plan.over().empty() ? 1 : 0)) {
    text += (text.empty() ? "" : "\n") + part.text();
  }
  const MetricDirection direction = results.metric.direction;
  if (results.metric.name.empty()) {
    text += "no run has logged a number yet\n";
  } else if (direction == MetricDirection::kUnknown) {
    text += fmt::format("last: {}; with  mode: max  or  mode: min  in the sweep file the best too",
                        results.metric.name);
  } else {
    text += fmt::format("best, last: {}, {} is best", results.metric.name,
                        direction == MetricDirection::kHigher ? "highest" : "lowest");
  }
  if (!results.metric.name.empty()) text += "\n";
  if (!plan.over().empty()) {
    text += fmt::format("means and standard deviations (n - 1) over {}, of the runs that ended\n",
                        fmt::join(plan.over(), ", "));
  }
  for (const auto& result : results.runs) {
    if (result.error.empty()) continue;
    text += fmt::format("{} {}: {}\n", number_name(result.run.number), result.state, result.error);
  }
  return text;
}

std::string sweep_table_json(const SweepPlan& plan, const SweepResults& results) {
  Json groups = Json::array();
  for (const auto& group : group_results(plan, results)) {
    Json json = {{"values", json_values(group.values)}};
    json.update(numbers_of(group));
    groups.push_back(std::move(json));
  }
  Json runs = Json::array();
  for (const auto& result : results.runs) {
    runs.push_back({{"number", result.run.number},
                    {"folder", result.folder},
                    {"state", result.state},
                    {"step", json_of_optional(result.step)},
                    {"values", json_values(result.run.values)},
                    {"best", json_of_optional(result.best)},
                    {"last", json_of_optional(result.last)},
                    {"error", result.error}});
  }
  const Json json = {{"name", plan.name()},
                     {"folder", plan.folder()},
                     {"metric", results.metric.name},
                     {"mode", mode_of(results.metric.direction)},
                     {"over", plan.over()},
                     {"table", groups},
                     {"runs", runs}};
  return write_json(json, 2) + "\n";
}

std::string sweep_table_csv(const SweepPlan& plan, const SweepResults& results) {
  const std::vector<std::string> keys = group_keys(plan);
  std::string text;
  for (const auto& key : keys) text += csv_cell(key) + ",";
  text += "runs,ended,best,best_sd,last,last_sd\n";
  for (const auto& group : group_results(plan, results)) {
    for (const auto& key : keys) {
      const Value* value = group.values.find(key);
      if (value != nullptr)
        text += csv_cell(value->is_text() ? value->as_text() : flow_yaml(*value));
      text += ",";
    }
    std::string line;
    const Json numbers = numbers_of(group);
    for (const auto& [name, value] : numbers.items()) {
      line += (line.empty() ? "" : ",") + number_cell(value);
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace stepop
