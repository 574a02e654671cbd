#include "runtime/tools/tune/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/config/yaml_writer.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {
namespace {

constexpr int64_t kMostProcessesTried = 8;
constexpr int64_t kMostWorkersTried = 8;

Candidate one(const std::string& key, Value value) {
  Candidate candidate;
  candidate.settings.set(key, std::move(value));
  return candidate;
}

/// 1, 2, 4, ... and `most` itself.
std::set<int64_t> powers_up_to(int64_t most) {
  std::set<int64_t> numbers{most};
  for (int64_t number = 1; number < most; number *= 2) numbers.insert(number);
  return numbers;
}

Alternatives threads_axis(const PresentSettings& present) {
  Alternatives axis;
  for (const int64_t threads : powers_up_to(present.cores)) {
    if (threads != present.threads) axis.push_back(one("num_threads", threads));
  }
  return axis;
}

/// The cores are shared out, whatever the config says of threads.
Alternatives processes_axis(const PresentSettings& present) {
  Alternatives axis;
  for (const int64_t count : powers_up_to(std::min(present.cores, kMostProcessesTried))) {
    if (count == present.processes) continue;
    const int64_t threads = std::max<int64_t>(1, present.cores / count);
    axis.push_back(one("processes", count).with(one("num_threads", threads)));
  }
  return axis;
}

Alternatives workers_axis(const PresentSettings& present) {
  Alternatives axis;
  const int64_t most = std::min(present.cores, kMostWorkersTried);
  for (const int64_t workers : std::set<int64_t>{0, 1, most}) {
    if (workers != present.workers) axis.push_back(one("n_data_processes", workers));
  }
  return axis;
}

}  // namespace

std::string Candidate::name() const {
  std::string text;
  for (const auto& [key, value] : settings) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, flow_yaml(value));
  }
  return text.empty() ? "as it is" : text;
}

Candidate Candidate::with(const Candidate& other) const {
  std::map<std::string, Value> all;
  for (const auto& [key, value] : settings) all[key] = value;
  for (const auto& [key, value] : other.settings) all[key] = value;
  Candidate both{.changes_results = changes_results || other.changes_results};
  for (const auto& [key, value] : all) both.settings.set(key, value);
  return both;
}

bool Candidate::overlaps(const Candidate& other) const {
  const auto has_one_thread = [](const Candidate& candidate) {
    const Value* threads = candidate.settings.find("num_threads");
    return threads != nullptr && *threads == Value(1);
  };
  const auto waits = [](const Candidate& candidate) {
    return candidate.settings.contains("thread_wait");
  };
  if ((has_one_thread(*this) && waits(other)) || (waits(*this) && has_one_thread(other)))
    return true;
  return std::ranges::any_of(
      settings, [&](const auto& entry) { return other.settings.contains(entry.first); });
}

OrderedMap<Value> settings_of(const PresentSettings& present) {
  OrderedMap<Value> settings{
      {"num_threads", present.threads},         {"onednn", present.onednn},
      {"channels_last", present.channels_last}, {"n_data_processes", present.workers},
      {"n_prefetch", present.prefetch},         {"flush_denormals", present.flushes_denormals}};
  if (!present.thread_wait.empty()) settings.set("thread_wait", present.thread_wait);
  settings.set("processes", present.processes);
  return settings;
}

std::vector<Alternatives> alternatives_of(const PresentSettings& present, bool precision,
                                          bool processes) {
  std::vector<Alternatives> axes;
  if (present.is_cpu) {
    axes.push_back(threads_axis(present));
    if (present.can_use_onednn) axes.push_back({one("onednn", !present.onednn)});
  }
  if (present.has_images) axes.push_back({one("channels_last", !present.channels_last)});
  if (present.is_cpu && processes) axes.push_back(processes_axis(present));
  axes.push_back(workers_axis(present));
  constexpr int64_t kUsual = 2;
  constexpr int64_t kMany = 8;
  axes.push_back({one("n_prefetch", present.prefetch >= kMany ? kUsual : kMany)});
  if (present.is_cpu) {
    Alternatives waits;
    for (const char* wait : kThreadWaits) {
      // With one thread nobody waits.
      const bool is_known = !present.thread_wait.empty() && present.cores > 1;
      if (is_known && wait != present.thread_wait) waits.push_back(one("thread_wait", wait));
    }
    axes.push_back(std::move(waits));
    axes.push_back({one("flush_denormals", !present.flushes_denormals)});
  }
  if (precision) {
    Candidate other = one("precision", present.precision == "float32" ? "bfloat16" : "float32");
    other.changes_results = true;
    axes.push_back({std::move(other)});
  }
  std::erase_if(axes, [](const Alternatives& axis) { return axis.empty(); });
  return axes;
}

}  // namespace stepop
