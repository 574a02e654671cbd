#include "runtime/tools/tune/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {
namespace {

constexpr int64_t kMostProcesses = 8;
constexpr int64_t kMostWorkers = 8;
constexpr int kUsualPrefetch = 2;
constexpr int kMuchPrefetch = 8;

/// 1, 2, 4, ... and `most` itself.
std::vector<Value> powers_up_to(int64_t most) {
  std::vector<Value> numbers;
  for (int64_t number = 1; number < most; number *= 2) numbers.emplace_back(number);
  numbers.emplace_back(most);
  return numbers;
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
  std::map<std::string, Value> all(settings.begin(), settings.end());
  all.insert(other.settings.begin(), other.settings.end());
  Candidate both{.changes_results = changes_results || other.changes_results};
  for (const auto& [key, value] : all) both.settings.set(key, value);
  return both;
}

bool Candidate::overlaps(const Candidate& other) const {
  const auto has_one_thread = [](const Candidate& candidate) {
    const Value* threads = candidate.settings.find("num_threads");
    return threads != nullptr && *threads == Value(1);
  };
  if (has_one_thread(*this) && other.settings.contains("thread_wait")) return true;
  if (has_one_thread(other) && settings.contains("thread_wait")) return true;
  return std::ranges::any_of(
      settings, [&](const auto& entry) { return other.settings.contains(entry.first); });
}

std::vector<Candidate> candidates_of(const PresentSettings& present, bool precision,
                                     bool processes) {
  std::vector<Candidate> all;
  const auto is_present = [&](const std::string& key, const Value& value) {
    const Value* now = present.settings.find(key);
    return now != nullptr && *now == value;
  };
  const auto add = [&](const std::string& key, const std::vector<Value>& values) {
    for (const Value& value : values) {
      if (!is_present(key, value)) all.push_back({.settings = {{key, value}}});
    }
  };
  for (const auto& [key, value] : present.networks) all.push_back({.settings = {{key, value}}});
  if (present.is_cpu) {
    add("num_threads", powers_up_to(present.cores));
    if (present.can_use_onednn) add("onednn", {true, false});
    add("flush_denormals", {true, false});
  }
  if (!present.is_cpu) add("cuda_graph", {true, false});
  if (present.has_images) add("channels_last", {true, false});
  if (!present.is_cpu && present.has_images) add("cudnn_benchmark", {true, false});
  if (present.is_cpu && processes) {
    for (const Value& count : powers_up_to(std::min(present.cores, kMostProcesses))) {
      if (is_present("processes", count)) continue;
      // The processes share the cores, whatever num_threads is now.
      const int64_t threads = std::max<int64_t>(1, present.cores / count.as_int());
      all.push_back({.settings = {{"num_threads", threads}, {"processes", count}}});
    }
  }
  const int64_t workers = std::min(present.cores, kMostWorkers);
  add("n_data_processes", {0, 1});
  if (workers > 1) add("n_data_processes", {workers});
  add("n_prefetch", {is_present("n_prefetch", kMuchPrefetch) ? kUsualPrefetch : kMuchPrefetch});
  if (present.is_cpu) {
    for (const char* wait : kThreadWaits) {
      if (present.settings.contains("thread_wait") && present.cores > 1) add("thread_wait", {wait});
    }
  }
  if (precision) {
    const char* other = present.precision == "float32" ? "bfloat16" : "float32";
    all.push_back({.settings = {{"precision", other}}, .changes_results = true});
  }
  return all;
}

}  // namespace stepop
