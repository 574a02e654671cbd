#include "runtime/train/loop/disk_need.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/core/base/number_text.h"

namespace stepop {
namespace {

constexpr double kMuchOfDisk = 0.1;

/// `1,592 checkpoints of 44.1 kB`
std::string part_text(double count, const char* what, double bytes) {
  return fmt::format("{} of {}", counted(std::llround(count), what), size_text(bytes));
}

}  // namespace

bool DiskNeed::is_ready() const {
  return !is_over_ && checkpoint_bytes_ > 0 &&
         std::ranges::all_of(settings_.evaluations, [&](const EvaluationSettings& evaluation) {
           return evaluations_.contains(evaluation.name);
         });
}

/// How often something is due between `step` and the end; 0 for minutes, whose number is unknown.
double DiskNeed::times_after(const Trigger& when, int64_t step) const {
  const auto all = when.times_within(settings_.num_steps);
  const auto before = when.times_within(step);
  return all && before ? static_cast<double>(*all - *before) : 0;
}

std::string DiskNeed::look(int64_t step, double free_bytes) {
  is_over_ = true;
  // A checkpoint is written at the end of each epoch and before each evaluation.
  double checkpoints = static_cast<double>(settings_.num_steps - step) /
                       static_cast<double>(std::max<int64_t>(settings_.steps_per_epoch, 1));
  checkpoints = std::max(checkpoints, times_after(settings_.checkpoint, step));
  std::vector<std::string> parts;
  double outputs = 0;
  for (const auto& evaluation : settings_.evaluations) {
    const double times = times_after(evaluation.when, step);
    const int64_t* bytes = evaluations_.find(evaluation.name);
    checkpoints = std::max(checkpoints, times);
    if (bytes == nullptr || *bytes == 0 || times == 0) continue;
    outputs += times * static_cast<double>(*bytes);
    parts.push_back(part_text(times, "evaluation", static_cast<double>(*bytes)));
  }
  const Retention& retention = settings_.retention;
  const bool keeps_all = retention.keep_last == 0;
  if (!keeps_all) {
    checkpoints =
        std::min(checkpoints, static_cast<double>(retention.keep_last + retention.keep_best));
  }
  const auto size = static_cast<double>(checkpoint_bytes_);
  const double need = checkpoints * size + outputs;
  if (need <= kMuchOfDisk * free_bytes) return "";
  parts.insert(parts.begin(), part_text(checkpoints, "checkpoint", size));
  std::string text =
      fmt::format("the disk has {} left, and the rest of this training will write about {}: {}",
                  size_text(free_bytes), size_text(need), fmt::join(parts, " and "));
  std::vector<std::string> advice;
  if (keeps_all && checkpoints * size > outputs / 10) {
    advice.push_back("checkpoints: {keep_last: 3} keeps the newest three");
  }
  if (outputs > need / 10) {
    advice.push_back("eval_hook: {clean_after_callbacks: true} keeps no outputs");
  }
  return advice.empty() ? text : fmt::format("{}; {}", text, fmt::join(advice, ", and "));
}

double free_bytes_at(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

}  // namespace stepop
