#include "runtime/tools/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/tools/report/code_changes.h"
#include "runtime/tools/report/config_table.h"
#include "runtime/tools/report/frames.h"
#include "runtime/tools/report/page.h"
#include "runtime/tools/report/report_curves.h"
#include "runtime/tools/report/report_frames.h"
#include "runtime/tools/report/report_json.h"
#include "runtime/tools/report/run_curves.h"

namespace stepop {
namespace {

constexpr int64_t kPictureBytes = 6'000'000;

bool all_differ(std::vector<std::string> names) {
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) == names.end();
}

/// The runs' names without their times where these differ, else their folders' names, else paths.
std::vector<std::string> labels_of(const std::vector<RunDirectory>& runs) {
  std::vector<std::string> names;
  std::vector<std::string> folders;
  std::vector<std::string> paths;
  for (const auto& run : runs) {
    names.push_back(run.run_name());
    folders.push_back(run.folder_name());
    paths.push_back(run.root());
  }
  return all_differ(names) ? names : all_differ(folders) ? folders : paths;
}

class ComparisonPage {
 public:
  explicit ComparisonPage(const std::vector<RunDirectory>& runs)
      : runs_(runs), labels_(labels_of(runs)) {}

  std::string json() {
    data_["runs"] = Json::array();
    for (size_t i = 0; i < runs_.size(); ++i) add_run(runs_[i], labels_[i]);
    add_configs();
    add_part("the pictures", notes_, [&] { add_pictures(); });
    add_part("the code", notes_, [&] { data_["code"] = describe_code_changes(labels_, runs_); });
    data_["written"] = local_time("%Y-%m-%d %H:%M:%S %z");
    data_["notes"] = notes_;
    return write_json(data_);
  }

 private:
  void add_run(const RunDirectory& run, const std::string& label) {
    Json json = {{"label", label}, {"run", {{"name", run.folder_name()}, {"state", "unknown"}}}};
    std::vector<std::string> notes;
    Value config = Value::Map{};
    const auto part = [&](const char* what, const auto& add) { add_part(what, notes, add); };
    part("the config", [&] {
      config = resolve_config({run.last_config()}, {});
      configs_.push_back(config);
      configured_.push_back(label);
    });
    RunCurves curves;
    part("the metrics", [&] { curves = read_curves(run.metrics_file(), "", runs_.size()); });
    part("the state of the run", [&] { json["run"] = run_json(run, curves); });
    json["axis"] = axis_json(curves);
    json["curves"] = curves_json(curves, config);
    note_broken_lines(curves, notes);
    for (const auto& note : notes) notes_.push_back(fmt::format("{}: {}", label, note));
    data_["runs"].push_back(std::move(json));
  }

  /// Pictures of log ops; those of one title stand beside each other.
  void add_pictures() {
    std::vector<FrameSeries> pictures;
    for (size_t i = 0; i < runs_.size(); ++i) {
      for (auto& series : find_frames(runs_[i].root()).logged) {
        pictures.push_back(std::move(series));
        pictures.back().title += " (" + labels_[i] + ")";
      }
    }
    std::ranges::stable_sort(pictures, {}, &FrameSeries::title);
    fit_frames(pictures, kPictureBytes);
    data_["pictures"] = frames_json(pictures);
  }

  /// A row for each key with different values; null where a run lacks it.
  void add_configs() {
    if (configs_.size() < 2) return;
    Json rows = Json::array();
    for (const auto& [path, values] : compare_configs(configs_)) {
      Json cells = Json::array();
      for (const auto& value : values) cells.push_back(value ? Json(*value) : Json());
      rows.push_back({{"path", path}, {"values", cells}});
    }
    data_["configs"] = {{"labels", configured_}, {"rows", rows}};
  }

  const std::vector<RunDirectory>& runs_;
  std::vector<std::string> labels_;
  std::vector<Value> configs_;  ///< Those that can be read.
  std::vector<std::string> configured_;
  Json data_ = Json::object();
  std::vector<std::string> notes_;
};

}  // namespace

std::string comparison_data(const std::vector<RunDirectory>& runs) {
  return ComparisonPage(runs).json();
}

std::string comparison_page(const std::string& data, const std::string& title, bool is_live) {
  std::vector<std::string_view> scripts = {"elements.js", "chart.js", "curves.js", "frames.js",
                                           "comparison.js"};
  if (is_live) scripts.push_back("live.js");
  return html_page(scripts, data, title);
}

void write_comparison(const std::vector<RunDirectory>& runs, const std::string& path) {
  write_file_atomically(
      path, comparison_page(comparison_data(runs), fmt::format("{} runs", runs.size())));
}

}  // namespace stepop
