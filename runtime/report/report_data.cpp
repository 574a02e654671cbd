// The JSON of a report. Numbers that are no numbers are null; of `points` those are gaps.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "eval_out/find_evaluations.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/config/difference.h"
#include "runtime/config/resolve.h"
#include "runtime/error_text.h"
#include "runtime/log/metrics_scan.h"
#include "runtime/log/number_text.h"
#include "runtime/report/base64.h"
#include "runtime/report/frames.h"
#include "runtime/report/report.h"
#include "runtime/report/run_curves.h"
#include "runtime/report/worst_examples.h"
#include "runtime/run/run_summary.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostLogLines = 200;
constexpr size_t kMostTextBytes = 65'536;
constexpr size_t kMostEvaluations = 300;

/// Six digits, which is more than a screen shows.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

/// With a word for what JSON has no number for.
Json value_at(const std::optional<ScalarAt>& at) {
  if (!at) return nullptr;
  Json value = number(at->value);
  if (value.is_null()) value = short_number(at->value);
  return {{"step", at->step}, {"value", value}};
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Puts a report together, part by part; one that fails becomes a note.
class Report {
 public:
  Report(const RunDirectory& run, const ReportOptions& options) : run_(run), options_(options) {}

  std::string json() {
    part("the configs", [&] { add_configs(); });
    part("the metrics", [&] { curves_ = read_curves(run_.metrics_file()); });
    part("the state of the run", [&] { add_run(); });
    part("the curves", [&] { add_curves(); });
    part("the pictures", [&] { add_frames(); });
    part("the evaluations", [&] { add_evaluations(); });
    part("the worst examples", [&] { add_worst(); });
    part("the log", [&] { add_log(); });
    data_["notes"] = notes_;
    return data_.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  template <class Add>
  void part(const char* what, const Add& add) {
    try {
      add();
    } catch (const std::exception& error) {
      notes_.push_back(fmt::format("{} could not be read: {}", what, error_text(error)));
    }
  }

  void add_run() {
    const RunSummary summary = summarize_run(run_.root());
    const auto last_seconds = curves_.seconds.points();
    const CheckpointFolder checkpoints(run_.checkpoints());
    const std::vector<int64_t> steps = checkpoints.steps();
    const auto best = checkpoints.best();
    const RunProcess& process = summary.status.process;
    data_["run"] = {{"name", run_.folder_name()},
                    {"folder", fs::absolute(run_.root()).lexically_normal().string()},
                    {"state", name_of(summary.status.state)},
                    {"host", process.host},
                    {"pid", process.pid},
                    {"started", process.started},
                    {"written", local_time("%Y-%m-%d %H:%M:%S")},
                    {"active", summary.age},
                    {"step", summary.step ? Json(*summary.step) : Json()},
                    {"epoch", number(summary.epoch)},
                    {"num_epochs", number(summary.num_epochs)},
                    {"seconds", last_seconds.empty() ? Json() : number(last_seconds.back().value)},
                    {"samples", curves_.samples},
                    {"metric", summary.metric},
                    {"last", number(summary.last)},
                    {"best", number(summary.best)},
                    {"checkpoints", steps.size()},
                    {"best_checkpoint", best ? Json(*best) : Json()}};
  }

  static Json columns(const std::vector<ScalarAt>& points) {
    Json steps = Json::array();
    Json values = Json::array();
    for (const ScalarAt& point : points) {
      steps.push_back(point.step);
      values.push_back(number(point.value));
    }
    return {{"steps", steps}, {"values", values}};
  }

  void add_curves() {
    data_["axis"] = {{"epoch", columns(curves_.epochs.points())},
                     {"seconds", columns(curves_.seconds.points())}};
    data_["curves"] = Json::array();
    for (const auto& [name, scalar] : curves_.scalars) {
      const Better better = better_of(name, &config_);
      Json curve = columns(scalar.curve.points());
      curve["name"] = name;
      curve["count"] = scalar.curve.count();
      curve["thinned"] = scalar.curve.is_thinned();
      if (scalar.curve.is_thinned()) curve["means"] = columns(scalar.curve.means());
      curve["better"] = better == Better::kLower    ? "lower"
                        : better == Better::kHigher ? "higher"
                                                    : "";
      curve["last"] = value_at(scalar.summary.last);
      curve["best"] = value_at(best_of(scalar.summary, better));
      data_["curves"].push_back(std::move(curve));
    }
    if (curves_.broken_lines > 0) {
      notes_.push_back(fmt::format("lines of train/metrics.jsonl that are no metrics, left out: {}",
                                   curves_.broken_lines));
    }
  }

  void add_configs() {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(run_.configs(), failed)) {
      if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
    }
    const bool has_trained = std::any_of(
        names.begin(), names.end(), [](const auto& name) { return name.starts_with("train_"); });
    if (has_trained) std::erase_if(names, [](auto& name) { return !name.starts_with("train_"); });
    std::sort(names.begin(), names.end());
    Json starts = Json::array();
    std::optional<Value> before;
    for (const auto& name : names) {
      part(name.c_str(), [&] {
        Value config = resolve_config({run_.configs() + "/" + name + ".yaml"}, {});
        Json changes = Json::array();
        if (before) {
          for (const auto& [path, was, now] : differences(*before, config)) {
            changes.push_back({{"path", path},
                               {"before", was ? Json(*was) : Json()},
                               {"now", now ? Json(*now) : Json()}});
          }
        }
        starts.push_back({{"name", name}, {"changes", changes}});
        config_ = config;
        before = std::move(config);
      });
    }
    const std::string newest = names.empty() ? "" : names.back() + ".yaml";
    data_["config"] = {{"file", newest},
                       {"yaml", newest.empty() ? "" : read_bytes(run_.configs() + "/" + newest)},
                       {"starts", starts}};
  }

  static Json frames_json(const std::vector<FrameSeries>& all, bool is_text) {
    Json list = Json::array();
    for (const FrameSeries& series : all) {
      Json frames = Json::array();
      for (const auto& [step, path] : series.paths) {
        std::string bytes = read_bytes(path);
        if (is_text && bytes.size() > kMostTextBytes) {
          bytes = bytes.substr(0, kMostTextBytes) + "\n... (cut)";
        }
        frames.push_back({{"step", step}, {"data", is_text ? bytes : base64(bytes)}});
      }
      if (!frames.empty() || series.left_out > 0) {
        list.push_back(
            {{"title", series.title}, {"frames", frames}, {"left_out", series.left_out}});
      }
    }
    return list;
  }

  void add_frames() {
    RunFrames frames = find_frames(run_.root());
    const size_t logged = frames.logged.size();
    std::vector<FrameSeries> pictures = std::move(frames.logged);
    pictures.insert(pictures.end(), frames.evaluated.begin(), frames.evaluated.end());
    fit_frames(pictures, options_.picture_bytes);
    fit_frames(frames.texts, options_.text_bytes);
    const auto middle = pictures.begin() + static_cast<std::ptrdiff_t>(logged);
    data_["pictures"] = frames_json({pictures.begin(), middle}, false);
    data_["evaluation_pictures"] = frames_json({middle, pictures.end()}, false);
    data_["evaluation_texts"] = frames_json(frames.texts, true);
  }

  /// Its own scalars, else those that the run logged at its step.
  OrderedMap<double> scalars_of(const FoundEvaluation& evaluation) const {
    std::error_code failed;
    const std::string path = evaluation.folder + "/scalars.json";
    if (fs::exists(path, failed)) return read_scalars(path);
    const auto found = curves_.evaluations.find(evaluation.step);
    return found == curves_.evaluations.end() ? OrderedMap<double>() : found->second;
  }

  void add_evaluations() {
    std::vector<FoundEvaluation> found = find_evaluations(run_.root());
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.step < b.step; });
    const size_t total = found.size();
    if (total > kMostEvaluations) {
      std::vector<FoundEvaluation> some;
      for (size_t i = 0; i < kMostEvaluations; ++i) {
        some.push_back(found[i * (total - 1) / (kMostEvaluations - 1)]);
      }
      found = std::move(some);
    }
    std::vector<std::string> names;
    Json rows = Json::array();
    for (const FoundEvaluation& evaluation : found) {
      Json values = Json::object();
      part(evaluation.folder.c_str(), [&] {
        for (const auto& [name, value] : scalars_of(evaluation)) {
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
          values[name] = std::isfinite(value) ? number(value) : Json(short_number(value));
        }
      });
      rows.push_back({{"start", evaluation.start},
                      {"step", evaluation.step},
                      {"complete", !evaluation.outputs.ends_with(".part")},
                      {"values", values}});
    }
    Json columns = Json::array();
    for (const auto& name : names) {
      const Better better = better_of(name, &config_);
      columns.push_back({{"name", name},
                         {"better", better == Better::kLower    ? "lower"
                                    : better == Better::kHigher ? "higher"
                                                                : ""}});
    }
    data_["evaluations"] = {{"columns", columns}, {"rows", rows}, {"total", total}};
  }

  void add_worst() {
    std::string path;
    for (const FoundEvaluation& evaluation : find_evaluations(run_.root())) {
      // A .part may be in the midst of being written.
      const bool is_whole = evaluation.outputs.ends_with(".h5");
      const bool has_whole = path.ends_with(".h5");
      if (!evaluation.outputs.empty() && (is_whole || !has_whole)) path = evaluation.outputs;
    }
    if (path.empty()) return;
    const EvalFile file(path);
    const WorstExamples worst = find_worst_examples(file, options_.worst_examples);
    if (worst.examples.empty()) return;
    Json examples = Json::array();
    for (const WorstExample& example : worst.examples) {
      Json pictures = Json::array();
      for (const auto& bytes : example.pictures) pictures.push_back(base64(bytes));
      examples.push_back({{"index", example.index},
                          {"loss", short_number(example.loss)},
                          {"values", example.values},
                          {"pictures", pictures}});
    }
    data_["worst"] = {{"file", fs::path(path).lexically_relative(run_.root()).string()},
                      {"loss", worst.loss},
                      {"keys", worst.keys},
                      {"picture_keys", worst.picture_keys},
                      {"examples", examples}};
  }

  void add_log() {
    std::error_code failed;
    if (!fs::exists(run_.log_file(), failed)) return;
    std::vector<std::string> lines = last_lines(run_.log_file());
    if (lines.size() > kMostLogLines) lines.erase(lines.begin(), lines.end() - kMostLogLines);
    data_["log"] = lines;
  }

  const RunDirectory& run_;
  const ReportOptions& options_;
  Value config_ = Value::Map{};
  RunCurves curves_;
  Json data_ = Json::object();
  std::vector<std::string> notes_;
};

}  // namespace

std::string report_data(const RunDirectory& run, const ReportOptions& options) {
  return Report(run, options).json();
}

}  // namespace stepop
