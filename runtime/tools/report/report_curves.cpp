#include "runtime/tools/report/report_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {
namespace {

/// The task's own curves come before the runtime's.
std::vector<std::string> curve_names(const RunCurves& curves) {
  std::vector<std::string> names;
  for (const auto& [name, scalar] : curves.scalars) names.push_back(name);
  std::ranges::stable_partition(names,
                                [](const auto& name) { return !name.starts_with("runtime/"); });
  return names;
}

/// Collects curves; two callbacks may report the same number, which then has one curve.
class CurveList {
 public:
  void add(const std::string& name, const ScalarHistory& scalar, MetricDirection direction) {
    Json curve = columns(scalar.curve.points());
    if (joins_equal(name, curve)) return;
    curve["name"] = name;
    curve["place"] = place_text(name);
    curve["count"] = scalar.curve.count();
    curve["thinned"] = scalar.curve.is_thinned();
    if (scalar.curve.is_thinned()) curve["means"] = columns(scalar.curve.means());
    curve["better"] = better_text(direction);
    curve["last"] = value_at(scalar.summary.last);
    curve["best"] = value_at(best_of(scalar.summary, direction));
    list_.push_back(std::move(curve));
  }

  Json take() { return std::move(list_); }

 private:
  /// Returns whether a curve with the same split, op, last word and points exists.
  bool joins_equal(const std::string& name, const Json& points) {
    const std::vector<std::string> parts = split_path(name);
    if (parts.size() < 3) return false;
    std::vector<size_t>& alike = alike_[{parts[0], parts[1], parts.back()}];
    for (const size_t place : alike) {
      Json& other = list_[place];
      if (other["steps"] != points["steps"] || other["values"] != points["values"]) continue;
      other["also"].push_back(name);
      return true;
    }
    alike.push_back(list_.size());
    return false;
  }

  Json list_ = Json::array();
  /// The places of curves by split, op and last word.
  std::map<std::array<std::string, 3>, std::vector<size_t>> alike_;
};

}  // namespace

Json run_json(const RunDirectory& run, const RunCurves& curves) {
  const RunSummary summary = summarize_run(run.root());
  const auto last_seconds = curves.seconds.points();
  const CheckpointFolder checkpoints(run.checkpoints());
  const std::vector<int64_t> steps = checkpoints.steps();
  const auto best = checkpoints.best();
  const RunProcess& process = summary.status.process;
  return {{"name", run.folder_name()},
          {"folder", std::filesystem::absolute(run.root()).lexically_normal().string()},
          {"state", name_of(summary.status.state)},
          {"host", process.host},
          {"pid", process.pid},
          {"started", process.started},
          {"written", local_time("%Y-%m-%d %H:%M:%S %z")},
          {"step", summary.step ? Json(*summary.step) : Json()},
          {"epoch", number(summary.epoch)},
          {"num_epochs", number(summary.num_epochs)},
          {"seconds", last_seconds.empty() ? Json() : number(last_seconds.back().value)},
          {"samples", curves.samples},
          {"metric", summary.metric},
          {"last", number(summary.last)},
          {"best", number(summary.best)},
          {"checkpoints", steps.size()},
          {"best_checkpoint", best ? Json(*best) : Json()}};
}

Json axis_json(const RunCurves& curves) {
  return {{"epoch", columns(curves.epochs.points())},
          {"seconds", columns(curves.seconds.points())}};
}

Json curves_json(const RunCurves& curves, const Value& config) {
  CurveList list;
  for (const auto& name : curve_names(curves)) {
    list.add(name, curves.scalars.at(name), metric_direction(name, &config));
  }
  return list.take();
}

void note_broken_lines(const RunCurves& curves, std::vector<std::string>& notes) {
  if (curves.broken_lines == 0) return;
  notes.push_back(fmt::format("lines of train/metrics.jsonl that are not metrics, left out: {}",
                              curves.broken_lines));
}

}  // namespace stepop
