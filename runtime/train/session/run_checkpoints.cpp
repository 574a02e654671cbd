#include "runtime/train/session/run_checkpoints.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/core/log/metrics_file.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// The name of the evaluation that yields the metric; nothing when logs yield it.
std::optional<std::string> evaluation_of(const Settings& settings) {
  for (const auto& evaluation : settings.evaluations) {
    if (settings.retention.metric.starts_with(evaluation.prefix() + "/")) return evaluation.name;
  }
  return std::nullopt;
}

}  // namespace

RunCheckpoints::RunCheckpoints(const RunDirectory& directory, const Settings& settings,
                               Console& console, Profile* profile,
                               CheckpointWriter::BeforeWrite before_write, bool writes)
    : directory_(directory),
      retention_(settings.retention),
      evaluation_(evaluation_of(settings)),
      console_(console),
      profile_(profile),
      writes_(writes),
      folder_(directory.checkpoints()),
      writer_(directory.checkpoints(),
              [this, before_write = std::move(before_write)](const Checkpoint& checkpoint) {
                write_.emplace(profile_, "checkpoint writer", "write a checkpoint");
                before_write(checkpoint);
              }) {}

bool RunCheckpoints::begin(int64_t step) {
  if (std::filesystem::exists(folder_.path_of(step))) last_step_ = step;
  if (!retention_.metric.empty()) {
    scan_metric(directory_.metrics_file(), retention_.metric,
                [&](int64_t logged_step, double value) { metric_[logged_step] = value; });
  }
  if (evaluation_) {
    for (const auto& evaluation : finished_evaluations(directory_, /*of_trainings=*/true)) {
      if (evaluation.name == evaluation_ && evaluation.step <= step) keep_unjudged(evaluation.step);
    }
  }
  update();
  return last_step_ == step;
}

void RunCheckpoints::observe(int64_t step, const OrderedMap<double>& scalars) {
  const double* metric = scalars.find(retention_.metric);
  if (metric == nullptr) return;
  if (std::isnan(*metric) && !std::exchange(is_nan_reported_, true) && writes_) {
    console_.warn(
        fmt::format("checkpoints/metric: {} is NaN in step {}, and a checkpoint without a "
                    "number is never the best",
                    retention_.metric, step));
  }
  metric_[step] = *metric;
  unjudged_.erase(step);
}

void RunCheckpoints::keep_unjudged(int64_t step) {
  if (evaluation_ && !metric_.contains(step)) unjudged_.insert(step);
}

std::string RunCheckpoints::save(const Checkpoint& checkpoint) {
  last_step_ = checkpoint.progress.global_step;
  if (!writes_) return {};
  return writer_.save(checkpoint,
                      [this, metric = metric_, unjudged = unjudged_](const std::string&) {
                        folder_.update_links_and_sweep(metric, retention_, unjudged);
                        write_.reset();
                      });
}

void RunCheckpoints::check() {
  writer_.check();
  report_written();
}

void RunCheckpoints::wait() {
  const Span span(profile_, "waiting for a checkpoint's file");
  writer_.wait();
  report_written();
}

void RunCheckpoints::update() {
  if (!writes_) return;
  wait();
  const Span span(profile_, "keep checkpoints");
  folder_.update_links_and_sweep(metric_, retention_, unjudged_);
}

/// Reports a checkpoint that is safe on the disk.
void RunCheckpoints::report_written() {
  const auto path = writer_.take_written();
  if (!path) return;
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(*path, failed);
  if (!failed) written_bytes_ = static_cast<int64_t>(bytes);
  console_.detail("checkpoint: " + *path);
}

}  // namespace stepop
