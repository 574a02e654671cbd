#include "runtime/tools/sweep/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/config/config.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/sweep/random_values.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

struct SweepKey {
  std::string_view path;
  const char* type;
  const char* default_value;
  const char* about;
};

/// The keys of a sweep file.
constexpr SweepKey kSweepKeys[] = {
    {"base", "text or list", "(must be given)", "the configs that all runs begin with"},
    {"grid", "map", "(none)", "lists of values by key: every combination is a run"},
    {"list", "list", "(none)", "maps of keys and values, each as it is"},
    {"random/runs", "int", "(none)", "how many runs with values that are drawn"},
    {"random/values", "map", "(none)", "by key: uniform, log_uniform, integer or choice"},
    {"random/seed", "int", "(0)", "another seed draws other values"},
    {"over", "text or list", "(none)", "keys that repeat a point, such as seed: means over these"},
    {"jobs", "int", "(1)", "runs at a time; --jobs wins"},
    {"metric", "text", "(the config's)", "the number that the table shows"},
    {"mode", "text", "(by the metric)", "max or min: what is better"},
    {"name", "text", "(the file's name)", "the sweep's folder, logs/sweeps/<name>"}};

[[noreturn]] void fail_at(const Value& value, const std::string& path, const std::string& message) {
  throw UsageError(fmt::format("{}: {}: {}", value.origin().text(), path, message));
}

/// The map at a key of the sweep file; empty when the key is missing.
const Value::Map& map_at(const Config& file, const std::string& key) {
  static const Value::Map none;
  file.claim(key);
  const Value* value = file.peek(key);
  if (value == nullptr || value->is_null()) return none;
  if (!value->is_map()) {
    fail_at(*value, key, "expected a map of keys of the config, found " + value->describe());
  }
  return value->as_map();
}

/// A text or a list of texts.
std::vector<std::string> texts_at(const Config& file, const std::string& key) {
  if (!file.has(key)) return {};
  if (file.peek(key)->is_text()) return {file.get<std::string>(key)};
  return file.get<std::vector<std::string>>(key);
}

void check_key(const std::string& path, const Value& value, const std::string& where) {
  if (split_path(path).empty()) fail_at(value, where, "a key of the config is missing");
}

/// Every combination of the values; the last key varies fastest.
std::vector<SweepPoint> grid_of(const Config& file) {
  std::vector<SweepPoint> points = {{}};
  for (const auto& [path, values] : map_at(file, "grid")) {
    check_key(path, values, "grid");
    if (!values.is_list() || values.as_list().empty()) {
      fail_at(values, "grid/" + path,
              fmt::format("expected a list of values, found {}{}", values.describe(),
                          values.is_map() ? "; a key below another one is written as a path: "
                                            "optimizer/lr: [1e-3, 3e-3]"
                                          : ""));
    }
    if (points.size() * values.as_list().size() > kMostSweepRuns) {
      fail_at(values, "grid", fmt::format("more than {} runs", kMostSweepRuns));
    }
    std::vector<SweepPoint> longer;
    for (const auto& point : points) {
      for (const auto& value : values.as_list()) {
        longer.push_back(point);
        longer.back().push_back({path, value});
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::vector<SweepPoint> list_of(const Config& file) {
  if (!file.has("list")) return {{}};
  file.claim("list");
  const Value& list = *file.peek("list");
  if (!list.is_list() || list.as_list().empty()) {
    fail_at(list, "list",
            "expected a list of maps such as {model/hidden: [64]}, found " + list.describe());
  }
  std::vector<SweepPoint> points;
  for (const auto& entry : list.as_list()) {
    if (!entry.is_map()) {
      fail_at(entry, "list",
              "expected a map of keys and values, such as {model/hidden: [64]}, found " +
                  entry.describe());
    }
    SweepPoint& point = points.emplace_back();
    for (const auto& [path, value] : entry.as_map()) {
      check_key(path, value, "list");
      point.push_back({path, value});
    }
  }
  return points;
}

std::vector<SweepPoint> random_of(const Config& file, std::set<std::string>& sampled) {
  if (!file.has("random")) return {{}};
  const int64_t runs = file.get_between("random/runs", 1, kMostSweepRuns, 0);
  if (runs == 0) throw file.error("random/runs", "missing: how many runs with random values?");
  const auto seed = static_cast<uint64_t>(file.get<int64_t>("random/seed", 0));
  std::vector<std::pair<std::string, RandomValues>> keys;
  for (const auto& [path, description] : map_at(file, "random/values")) {
    check_key(path, description, "random/values");
    keys.emplace_back(path, RandomValues(path, description));
    if (keys.back().second.is_range()) sampled.insert(path);
  }
  if (keys.empty()) {
    throw file.error("random/values", "missing; as in {optimizer/lr: {log_uniform: [1e-5, 1e-2]}}");
  }
  std::vector<SweepPoint> points(static_cast<size_t>(runs));
  for (size_t i = 0; i < points.size(); ++i) {
    for (const auto& [path, values] : keys) points[i].push_back({path, values.draw(seed, i)});
  }
  return points;
}

/// Combines each point of `slow` with each point of `fast`; no key may be in both.
std::vector<SweepPoint> product(const std::vector<SweepPoint>& slow,
                                const std::vector<SweepPoint>& fast, const std::string& file) {
  if (slow.size() * fast.size() > kMostSweepRuns) {
    throw UsageError(
        fmt::format("{}: {} runs; {} at most", file, slow.size() * fast.size(), kMostSweepRuns));
  }
  std::vector<SweepPoint> points;
  for (const auto& first : slow) {
    for (const auto& second : fast) {
      SweepPoint& point = points.emplace_back(first);
      for (const auto& value : second) {
        const auto is_same = [&](const Override& other) { return other.path == value.path; };
        if (const auto twice = std::find_if(first.begin(), first.end(), is_same);
            twice != first.end()) {
          fail_at(
              value.value, value.path,
              fmt::format("given values here and at {}; keep one", twice->value.origin().text()));
        }
        point.push_back(value);
      }
    }
  }
  return points;
}

void drop_repeated(std::vector<SweepPoint>& points) {
  std::set<std::string> seen;
  std::erase_if(points, [&](const SweepPoint& point) {
    return !seen.insert(flow_yaml(values_of(point))).second;
  });
}

/// The sweep's name; by default the file's name.
std::string name_of(const Config& file, const std::string& path) {
  const std::string name = file.get("name", fs::path(path).stem().string());
  if (name.empty() || name[0] == '.' || name.find_first_of("/\\\n") != std::string::npos ||
      !is_utf8(name)) {
    throw file.error("name", fmt::format("\"{}\" cannot be the name of a folder", name));
  }
  return name;
}

void check_over(const Config& file, const SweepFile& sweep) {
  std::vector<std::string> paths;
  for (const auto& point : sweep.points) {
    for (const auto& value : point) {
      if (std::find(paths.begin(), paths.end(), value.path) == paths.end())
        paths.push_back(value.path);
    }
  }
  for (const auto& path : sweep.over) {
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) continue;
    throw file.error("over", fmt::format("\"{}\" has no values in this sweep; there are {}", path,
                                         list_text(sorted_by_distance(path, paths))));
  }
}

/// As Config::unknown_keys, whose help is about the config of a training.
void check_keys(const Config& file) {
  std::vector<std::string> known;
  for (const SweepKey& key : kSweepKeys) {
    const std::string name(key.path.substr(0, key.path.find('/')));
    if (std::ranges::find(known, name) == known.end()) known.push_back(name);
  }
  for (const auto& key : file.keys()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const auto near = nearest_names(key, known, 1);
    throw UsageError(fmt::format(
        "{}: unknown key \"{}\": {}", file.peek(key)->origin().text(), key,
        near.empty() ? fmt::format("a sweep has {}; a value that all its runs have is a list of "
                                   "one, as in grid: {{seed: [1]}}",
                                   list_text(known))
                     : fmt::format("did you mean \"{}\"?", near.front())));
  }
  const std::string unknown = file.unknown_keys();
  if (!unknown.empty()) throw UsageError(unknown);
}

}  // namespace

std::string sweep_keys_text() {
  TextTable table({{"key"}, {"type"}, {"default"}, {"meaning"}});
  for (const SweepKey& key : kSweepKeys) {
    table.add({std::string(key.path), key.type, key.default_value, key.about});
  }
  return table.text();
}

SweepFile read_sweep_file(const std::string& path) {
  // References stay unresolved, since they refer to the config.
  const Config file(read_yaml_file_with_paths(path));
  SweepFile sweep;
  sweep.name = name_of(file, path);
  for (const auto& base : texts_at(file, "base")) {
    const std::string place = (fs::path(path).parent_path() / base).lexically_normal().string();
    std::error_code failed;
    if (!fs::is_regular_file(place, failed)) {
      throw file.error("base", fmt::format("{}: no such file", place));
    }
    sweep.base.push_back(place);
  }
  sweep.over = texts_at(file, "over");
  sweep.metric = file.get("metric", "");
  if (file.has("mode")) sweep.mode = read_more_is_better(file) ? "max" : "min";
  sweep.jobs = file.get_between("jobs", 1, kMostSweepJobs, 1);
  const bool varies = file.has("grid") || file.has("list") || file.has("random");
  const std::vector<SweepPoint> list = list_of(file);
  const std::vector<SweepPoint> random = random_of(file, sweep.sampled);
  const std::vector<SweepPoint> grid = grid_of(file);
  if (sweep.base.empty() && file.peek("iterator") != nullptr) {
    throw UsageError(
        fmt::format("{}: the config of a training, which a sweep begins with: write a file with  "
                    "base: [{}]  and  grid: {{optimizer/lr: [1e-3, 3e-3]}}",
                    path, fs::path(path).filename().string()));
  }
  check_keys(file);
  if (sweep.base.empty()) throw file.error("base", "missing: the configs that the runs begin with");
  if (!varies) {
    throw UsageError(
        fmt::format("{}: nothing varies: give a grid, a list or random values, as in  grid: "
                    "{{optimizer/lr: [1e-3, 3e-3]}}",
                    path));
  }
  sweep.points = product(product(list, random, path), grid, path);
  drop_repeated(sweep.points);
  check_over(file, sweep);
  return sweep;
}

Value::Map values_of(const SweepPoint& point) {
  Value::Map values;
  for (const auto& [path, value] : point) values.set(path, value);
  return values;
}

std::string point_text(const Value::Map& values) {
  std::string text;
  for (const auto& [path, value] : values) {
    text += (text.empty() ? "" : " ") + shell_word(fmt::format("{}={}", path, flow_yaml(value)));
  }
  return text;
}

std::vector<size_t> points_with_all_values(const SweepFile& sweep) {
  std::set<std::string> seen;
  const auto mark_of = [&](const Override& given) {
    const bool is_number = given.value.is_int() || given.value.is_float();
    const bool is_over =
        std::find(sweep.over.begin(), sweep.over.end(), given.path) != sweep.over.end();
    const bool is_alike = sweep.sampled.contains(given.path) || (is_over && is_number);
    return is_alike ? given.path : given.path + "=" + flow_yaml(given.value);
  };
  std::vector<size_t> chosen;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    bool is_new = i == 0;
    for (const auto& given : sweep.points[i]) is_new = seen.insert(mark_of(given)).second || is_new;
    if (is_new) chosen.push_back(i);
  }
  return chosen;
}

}  // namespace stepop
