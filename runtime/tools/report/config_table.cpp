#include "runtime/tools/report/config_table.h"

#include <algorithm>

#include "runtime/core/value/difference.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

using Differences = std::vector<ConfigDifference>;

const ConfigDifference* find(const Differences& differences, const std::string& path) {
  const auto found = std::find_if(differences.begin(), differences.end(),
                                  [&](const ConfigDifference& each) { return each.path == path; });
  return found == differences.end() ? nullptr : &*found;
}

/// Whether a part of the value at `path` differs; such a part has its own row.
bool differs_within(const Differences& differences, const std::string& path) {
  return std::any_of(differences.begin(), differences.end(), [&](const ConfigDifference& each) {
    return each.path.starts_with(path + "/");
  });
}

std::optional<std::string> value_at(const Value& config, const std::string& path) {
  const Value* value = config.find(path);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return flow_yaml(*value);
}

}  // namespace

std::vector<ConfigRow> compare_configs(const std::vector<Value>& configs) {
  std::vector<Differences> all;
  std::vector<std::string> paths;
  for (const Value& config : configs) {
    all.push_back(differences(configs.front(), config));
    for (const auto& difference : all.back()) {
      const bool is_new = std::find(paths.begin(), paths.end(), difference.path) == paths.end();
      if (is_new) paths.push_back(difference.path);
    }
  }
  std::vector<ConfigRow> rows;
  for (const std::string& path : paths) {
    std::optional<std::string> of_first;
    for (const auto& each : all) {
      if (const auto* difference = find(each, path)) of_first = difference->before;
    }
    ConfigRow row{path, {}};
    for (size_t i = 0; i < configs.size(); ++i) {
      const ConfigDifference* difference = find(all[i], path);
      const bool is_other = difference == nullptr && differs_within(all[i], path);
      row.values.push_back(difference != nullptr ? difference->now
                           : is_other            ? value_at(configs[i], path)
                                                 : of_first);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepop
