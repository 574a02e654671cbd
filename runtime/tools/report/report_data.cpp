// The JSON of a report. NaN and infinity are null; in `points`, null is a gap.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/difference.h"
#include "runtime/tools/report/code_changes.h"
#include "runtime/tools/report/frames.h"
#include "runtime/tools/report/report.h"
#include "runtime/tools/report/report_curves.h"
#include "runtime/tools/report/report_evaluations.h"
#include "runtime/tools/report/report_frames.h"
#include "runtime/tools/report/report_json.h"
#include "runtime/tools/report/run_curves.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostLogLines = 200;

std::string eval_op_of(const Value& config) {
  const Value* op = config.find("eval_hook/eval_op");
  return op != nullptr && op->is_text() ? op->as_text() : "validation/eval_op";
}

/// Builds a report part by part; a failing part becomes a note.
class Report {
 public:
  Report(const RunDirectory& run, const ReportOptions& options) : run_(run), options_(options) {}

  std::string json() {
    part("the code", [&] { add_code(); });
    part("the configs", [&] { add_configs(); });
    part("the metrics", [&] { curves_ = read_curves(run_.metrics_file(), eval_op_of(config_)); });
    part("the state of the run", [&] { data_["run"] = run_json(run_, curves_); });
    part("the curves", [&] {
      data_["axis"] = axis_json(curves_);
      data_["curves"] = curves_json(curves_, config_);
      note_broken_lines(curves_, notes_);
    });
    part("the evaluations",
         [&] { data_["evaluations"] = evaluations_json(run_.root(), curves_, config_, notes_); });
    part("the worst examples", [&] { add_worst(); });
    part("the pictures", [&] { add_frames(); });
    part("the log", [&] { add_log(); });
    data_["notes"] = notes_;
    return write_json(data_);
  }

 private:
  template <class Add>
  void part(const char* what, const Add& add) {
    add_part(what, notes_, add);
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
        starts.push_back({{"name", name}, {"changes", changes}, {"code", code_changes(name)}});
        config_ = config;
        before = std::move(config);
      });
    }
    const std::string newest = names.empty() ? "" : names.back() + ".yaml";
    data_["config"] = {
        {"file", newest},
        {"yaml", newest.empty() ? "" : try_read_file(run_.configs() + "/" + newest).value_or("")},
        {"starts", starts}};
  }

  /// Adds the run's newest code.
  void add_code() {
    code_ = find_kept_code(run_);
    if (code_.empty()) return;
    Json files = Json::array();
    for (const auto& [name, content] : code_.back().files) {
      files.push_back({{"name", name}, {"text", cut_text(content)}});
    }
    data_["code"] = {{"folder", "code/" + code_.back().time}, {"files", files}};
  }

  /// How the code of a start, `train_<time>`, differs from the preceding start's code.
  Json code_changes(const std::string& start) const {
    Json changes = Json::array();
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!start.ends_with("_" + code_[i].time)) continue;
      for (const auto& [file, what, lines] :
           compare_code(i == 0 ? KeptCode{} : code_[i - 1], code_[i])) {
        changes.push_back({{"file", file}, {"what", what}, {"lines", lines}});
      }
    }
    return changes;
  }

  void add_frames() {
    RunFrames frames = find_frames(run_.root());
    const size_t logged = frames.logged.size();
    std::vector<FrameSeries> pictures = std::move(frames.logged);
    pictures.insert(pictures.end(), frames.evaluated.begin(), frames.evaluated.end());
    fit_frames(pictures, std::max<int64_t>(options_.picture_bytes - worst_bytes_, 0));
    const size_t logged_texts = frames.logged_texts.size();
    std::vector<FrameSeries> texts = std::move(frames.logged_texts);
    texts.insert(texts.end(), frames.texts.begin(), frames.texts.end());
    fit_frames(texts, options_.text_bytes, kMostTextBytes);
    const auto middle = pictures.begin() + static_cast<std::ptrdiff_t>(logged);
    const auto middle_text = texts.begin() + static_cast<std::ptrdiff_t>(logged_texts);
    data_["pictures"] = frames_json({pictures.begin(), middle});
    data_["evaluation_pictures"] = frames_json({middle, pictures.end()});
    data_["texts"] = text_frames_json({texts.begin(), middle_text});
    data_["evaluation_texts"] = text_frames_json({middle_text, texts.end()});
  }

  void add_worst() {
    // Other pictures need some of the space too.
    const WorstJson worst =
        worst_json(run_.root(), options_.worst_examples, options_.picture_bytes / 2, notes_);
    if (!worst.json.is_null()) data_["worst"] = worst.json;
    worst_bytes_ = worst.picture_bytes;
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
  std::vector<KeptCode> code_;
  RunCurves curves_;
  int64_t worst_bytes_ = 0;  ///< The size of the worst examples' pictures.
  Json data_ = Json::object();
  std::vector<std::string> notes_;
};

}  // namespace

std::string report_data(const RunDirectory& run, const ReportOptions& options) {
  return Report(run, options).json();
}

}  // namespace stepop
