#include "runtime/tools/survey/survey.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/measure/one_thread.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/example_random.h"
#include "runtime/data/stream_dataset.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProgressEvery{200};
/// The number of examples that a thread takes at once.
constexpr int64_t kChunk = 16;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The threads of a survey and their results.
class Reading {
 public:
  Reading(const Dataset& dataset, const SurveyOptions& options)
      : dataset_(dataset),
        options_(options),
        size_(options.is_in_order ? options.examples : dataset.size()) {
    // For a few examples of a large dataset, reading all labels would cost more than the examples.
    if (options.examples < size_) return;
    for (const auto& key : dataset.label_keys()) labels_.set(key, dataset.labels(key));
  }

  Survey run() {
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    const int64_t count = options_.is_in_order ? 1 : std::max<int64_t>(options_.threads, 1);
    for (int64_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    try {
      wait(count);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      survey_.stopped_by = std::current_exception();
      stopping_ = true;
    }
    for (auto& thread : threads) thread.join();
    survey_.size = has_ended_ ? survey_.read : size_;
    survey_.seconds = seconds_since(start);
    if (survey_.read > 0)
      survey_.example_seconds = get_seconds_ / static_cast<double>(survey_.read);
    const auto by_index = [](const auto& a, const auto& b) { return a.index < b.index; };
    std::ranges::sort(survey_.bad, by_index);
    std::ranges::sort(survey_.bad_indices);
    std::ranges::sort(survey_.with_nan);
    std::ranges::sort(survey_.shown, {}, [](const auto& each) { return each.first; });
    for (auto& [key, summary] : keys_) survey_.keys.emplace_back(key, std::move(summary));
    return std::move(survey_);
  }

 private:
  /// The results of one thread in one chunk.
  struct Found {
    OrderedMap<KeySummary> keys;
    std::vector<BadExample> bad;
    std::vector<int64_t> with_nan;
    std::vector<std::pair<int64_t, Example>> shown;
    int64_t read = 0;
    double get_seconds = 0;
  };

  void wait(int64_t threads) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kProgressEvery, [&] { return ended_ == threads; })) {
      const int64_t read = survey_.read;
      const int64_t bad = survey_.bad_count;
      lock.unlock();
      if (options_.interrupt) options_.interrupt();
      if (options_.progress) options_.progress(read, bad);
      lock.lock();
    }
  }

  void work() {
    const at::NoGradGuard no_grad;
    compute_with_one_thread();
    const InterruptScope interrupt(options_.interrupt);
    while (!stopping_) {
      const int64_t first = next_.fetch_add(kChunk);
      if (first >= options_.examples) break;
      Found found;
      for (int64_t i = first; i < std::min(first + kChunk, options_.examples) && !stopping_; ++i) {
        read(i, found);
      }
      take_over(found);
    }
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  /// The index of the `i`-th example to read. If only a part is read, it is a random index in its
  /// stretch, since every n-th example of ordered data may be of the same class.
  int64_t index_of(int64_t i) const {
    const int64_t first = spread(i, options_.examples, size_);
    if (options_.examples >= size_) return first;
    const int64_t end = i + 1 < options_.examples ? spread(i + 1, options_.examples, size_) : size_;
    return first + Random(static_cast<uint64_t>(i)).below(end - first);
  }
  bool is_shown(int64_t i) const {
    const int64_t shown = std::min(options_.shown, options_.examples);
    if (shown <= 0) return false;
    const int64_t place = static_cast<int64_t>(static_cast<double>(i) * static_cast<double>(shown) /
                                               static_cast<double>(options_.examples));
    for (int64_t near = std::max<int64_t>(place - 1, 0); near <= place + 1 && near < shown;
         ++near) {
      if (spread(near, shown, options_.examples) == i) return true;
    }
    return false;
  }
  /// The place of the `i`-th of `count` evenly spread examples among `size`.
  static int64_t spread(int64_t i, int64_t count, int64_t size) {
    if (count >= size) return i;
    const int64_t step = size / count;
    return i * step + i * (size % count) / count;
  }

  void read(int64_t i, Found& found) {
    const int64_t index = index_of(i);
    ++found.read;
    Example example;
    const auto start = Clock::now();
    try {
      Random random = random_at(options_.order_seed, 0, index);
      example = dataset_.get(index, random);
      found.get_seconds += seconds_since(start);
      check_labels(index, example);
    } catch (const Interrupted&) {
      --found.read;
      const std::lock_guard lock(mutex_);
      survey_.stopped_by = std::current_exception();
      stopping_ = true;
      return;
    } catch (const EndOfStream&) {
      if (!options_.is_in_order) throw;
      --found.read;
      has_ended_ = stopping_ = true;
      return;
    } catch (...) {
      found.bad.push_back({index, text_of_current_exception()});
      return;
    }
    bool has_nan = false;
    for (const auto& [key, tensor] : example.tensors) {
      KeySummary& summary = found.keys[key];
      const int64_t before = summary.nans() + summary.infinities();
      summary.add(tensor);
      has_nan = has_nan || summary.nans() + summary.infinities() > before;
    }
    for (const auto& [key, text] : example.texts) found.keys[key].add(text);
    if (has_nan) found.with_nan.push_back(index);
    if (is_shown(i)) found.shown.emplace_back(index, std::move(example));
  }

  /// Checks that the dataset's labels equal the example's values.
  void check_labels(int64_t index, const Example& example) const {
    for (const auto& [key, labels] : labels_) {
      const at::Tensor* value = example.tensors.find(key);
      if (value == nullptr || !labels.defined()) continue;
      const at::Tensor label = labels[index];
      const bool is_same = label.sizes() == value->sizes() &&
                           label.scalar_type() == value->scalar_type() &&
                           (at::equal(label, *value) || label.isnan().any().item<bool>());
      if (!is_same) {
        throw Error(fmt::format(
            "labels(\"{}\") of the dataset does not have what the example has: {} and {}", key,
            value_text(label), value_text(*value)));
      }
    }
  }

  static std::string value_text(const at::Tensor& value) {
    if (value.numel() != 1 || value.is_complex()) return describe_tensor(value);
    return fmt::format("{} {}", c10::getDtypeNames(value.scalar_type()).first,
                       value.item<double>());
  }

  void take_over(Found& found) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, summary] : found.keys) keys_[key].merge(summary);
    survey_.read += found.read;
    get_seconds_ += found.get_seconds;
    survey_.bad_count += static_cast<int64_t>(found.bad.size());
    for (auto& bad : found.bad) {
      if (survey_.bad_indices.size() < Survey::kMostIndices) {
        survey_.bad_indices.push_back(bad.index);
      }
      if (survey_.bad.size() < Survey::kMostProblems) survey_.bad.push_back(std::move(bad));
    }
    for (const int64_t index : found.with_nan) {
      if (survey_.with_nan.size() < Survey::kMostIndices) survey_.with_nan.push_back(index);
    }
    for (auto& shown : found.shown) survey_.shown.push_back(std::move(shown));
  }

  const Dataset& dataset_;
  const SurveyOptions& options_;
  const int64_t size_;
  OrderedMap<at::Tensor> labels_;
  std::atomic<int64_t> next_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> has_ended_ = false;  ///< Whether a stream ended early.

  std::mutex mutex_;  ///< Protects all following members.
  std::condition_variable changed_;
  int64_t ended_ = 0;
  Survey survey_;
  OrderedMap<KeySummary> keys_;
  double get_seconds_ = 0;
};

}  // namespace

Survey survey_dataset(const Dataset& dataset, const SurveyOptions& options) {
  return Reading(dataset, options).run();
}

}  // namespace stepop
