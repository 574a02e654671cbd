#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/measure/one_thread.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/start_thread.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/data/example_random.h"
#include "runtime/data/notice.h"
#include "runtime/data/views/cache/cache_source.h"
#include "runtime/data/views/cache/example_bytes.h"
#include "runtime/data/views/cache/example_store.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kMostLimit = 1e9;  ///< So that its bytes can be counted.
/// The number of examples that are read at the start to estimate the size of all, and to detect
/// random examples.
constexpr int64_t kSamples = 8;
constexpr std::chrono::seconds kSayEvery(10);

bool is_equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor left = a.contiguous();
  const at::Tensor right = b.contiguous();
  return left.nbytes() == 0 ||
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

bool is_equal(const Example& a, const Example& b) {
  if (!(a.texts == b.texts) || a.tensors.size() != b.tensors.size()) return false;
  return std::all_of(a.tensors.begin(), a.tensors.end(), [&](const auto& entry) {
    const at::Tensor* other = b.tensors.find(entry.first);
    return other != nullptr && is_equal(entry.second, *other);
  });
}

/// Another dataset's examples, each read once. They are kept in memory, or in a file that other
/// runs use too. They are read with random numbers that depend only on the index.
class Cached : public SameOrder, public KeepsFloat64 {
 public:
  struct Params {
    Source dataset;
    std::string folder;  ///< Empty: in memory.
    double limit = 4;
    bool partial = false;
    std::string fill = "asked";
    bool frozen = false;
    std::string version;

    void declare(Parameters& p) {
      p.require("dataset", dataset,
                "the other one; what is random, such as Augment, goes around Cached");
      const Config* config = p.describe_optional(
          "folder", "path", "the folder of the file, which runs share; none: in memory");
      if (config != nullptr) {
        config->declare_path("folder");
        folder = config->get<std::string>("folder");
        limit = 50;
      }
      p.add("limit", limit, "gigabytes; the default of a file is 50", above(0));
      p.add("partial", partial,
            "larger datasets are kept up to the limit, and the rest read each time");
      p.add("frozen", frozen, "examples that are random are kept as they are drawn once");
      p.add("fill", fill, "asked: as examples are needed; start: all before the first step",
            one_of({"asked", "start"}));
      p.add("version", version,
            "any text; another one makes another file, when what the dataset depends on cannot be "
            "seen in its config and files");
    }
  };

  Cached(Params params, const Config& config)
      : SameOrder(std::move(params.dataset)),
        limit_(static_cast<int64_t>(std::min(params.limit, kMostLimit) * kGigabyte)),
        is_partial_(params.partial),
        is_frozen_(params.frozen) {
    if (params.folder.empty()) {
      check_samples(config);
      store_ = std::make_unique<ExampleMemory>(size(), limit_);
    } else {
      open_file(config, params.folder, params.version);
    }
    fills_at_start_ = params.fill == "start";
    if (fills_at_start_) fill_all();
  }

  Example get(int64_t index, Random& /*random*/) const override {
    Example example = kept(index);
    if (path_.empty()) {  // the stored example shares its tensors with other callers
      for (auto& [key, tensor] : example.tensors) tensor = tensor.clone();
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> /*randoms*/) const override {
    std::vector<Example> examples;
    examples.reserve(indices.size());
    for (const int64_t index : indices) {
      try {
        examples.push_back(kept(index));
      } catch (const Interrupted&) {
        throw;
      } catch (...) {
        throw Error(fmt::format("example {}: {}", index, text_of_current_exception()));
      }
    }
    return source()->collate(examples, {indices.begin(), indices.end()});
  }

  /// Not with a file: other runs use it too, and it may hold float32.
  bool keep_float64(std::string_view key) override {
    if (!path_.empty() || !source().keep_float64(key)) return false;
    if (store_->count() == 0) return true;
    const auto type_in = [&](const Example& example) {
      const at::Tensor* values = example.tensors.find(key);
      return values == nullptr ? at::kFloat : values->scalar_type();
    };
    const auto stored = store_->find(0);
    Random random = random_of_fixed_example(0);
    if (stored && type_in(*stored) == type_in(source()->get(0, random))) return true;
    store_ = std::make_unique<ExampleMemory>(size(), limit_);
    if (fills_at_start_) fill_all();
    return true;
  }

  std::string notice() const override {
    const std::string notice = SameOrder::notice();
    if (path_.empty()) return notice;
    return joined_notices(
        {notice, fmt::format("{} of {} examples are cached in {}", with_thousands(store_->count()),
                             with_thousands(size()), path_)});
  }

 private:
  void open_file(const Config& params, const std::string& folder, const std::string& version) {
    if (size() > ExampleFile::kMostExamples) {
      throw params.error(
          "dataset", fmt::format("it has {} examples, a cache at most {}", with_thousands(size()),
                                 with_thousands(ExampleFile::kMostExamples)));
    }
    const std::string description = fmt::format("version: {}\nexamples: {}\n{}", version, size(),
                                                describe_source(params, "dataset"));
    const Value* source = params.peek("dataset/class");
    const std::string name =
        source != nullptr ? source->as_text() : params.peek("dataset")->as_text();
    path_ = fmt::format("{}/{}-{}.examples", folder, name, content_checksum(description));
    std::error_code ignored;
    if (!std::filesystem::exists(path_, ignored)) check_samples(params);
    make_folders(folder);
    store_ = std::make_unique<ExampleFile>(path_, description, size(), limit_);
  }

  /// Checks some examples before any are stored: all must have room, and none may be random, since
  /// the cache would freeze it. An example that cannot be read here is reported when it is needed.
  void check_samples(const Config& params) const {
    double bytes = 0;
    int64_t read = 0;
    const int64_t count = std::min(size(), kSamples);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = i * (size() / count);
      try {
        Random random = random_of_fixed_example(index);
        const Example example = source()->get(index, random);
        bytes += static_cast<double>(bytes_of(example));
        ++read;
        Random other = random_of_fixed_example(~index);
        if (is_frozen_ || is_equal(example, source()->get(index, other))) continue;
      } catch (const Interrupted&) {
        throw;
      } catch (...) {
        continue;
      }
      throw params.error(
          "dataset", fmt::format("its example {} is another one each time it is read, and a cache "
                                 "would show the same one in each epoch: put what is random, such "
                                 "as Augment, around Cached, or choose frozen: true",
                                 index));
    }
    if (is_partial_ || read == 0) return;
    const double all = bytes / static_cast<double>(read) * static_cast<double>(size());
    if (all <= static_cast<double>(limit_)) return;
    throw params.error(
        "limit",
        fmt::format("the {} examples take about {}, and the cache's limit is {}: choose "
                    "limit: {:.0f} (gigabytes), or partial: true, and those beyond the "
                    "limit are read each time",
                    with_thousands(size()), size_text(all), size_text(static_cast<double>(limit_)),
                    std::ceil(1.1 * all / kGigabyte)));
  }

  /// The example from the store, shared with it; or the example read and stored.
  Example kept(int64_t index) const {
    check_index(index, size());
    if (auto found = store_->find(index)) return std::move(*found);
    Random random = random_of_fixed_example(index);
    Example example = source()->get(index, random);
    store_->add(index, example);
    return example;
  }

  /// Reads all missing examples, in several threads; reports its progress when it takes long.
  void fill_all() const {
    constexpr int64_t kMostThreads = 16;
    const auto threads = static_cast<size_t>(std::min(usable_processors(), kMostThreads));
    std::atomic<int64_t> next = 0;
    std::mutex mutex;  // guards the variables below
    std::condition_variable ended;
    size_t at_work = threads;
    std::exception_ptr failure;
    const InterruptCheck& interrupt = InterruptScope::current();
    const auto work = [&] {
      compute_with_one_thread();
      const InterruptScope scope(interrupt);
      std::exception_ptr own;
      try {
        for (int64_t index = next++; index < size(); index = next++) {
          if (store_->find(index)) continue;
          if (interrupt) interrupt();
          Random random = random_of_fixed_example(index);
          store_->add(index, source().get(index, random));
        }
      } catch (...) {
        own = std::current_exception();
        next = size();
      }
      const std::lock_guard lock(mutex);
      if (own && !failure) failure = own;
      --at_work;
      ended.notify_all();
    };
    std::vector<std::thread> workers;
    while (workers.size() < threads) {
      try {
        workers.push_back(start_thread("fills a cache", work));
      } catch (const Error&) {
        if (workers.empty()) throw;
        const std::lock_guard lock(mutex);  // the threads that have started do all the work
        at_work -= threads - workers.size();
        break;
      }
    }
    {
      std::unique_lock lock(mutex);
      while (!ended.wait_for(lock, kSayEvery, [&] { return at_work == 0; })) {
        fmt::print(stderr, "{}: {} of {} examples are cached\n", source().place(),
                   with_thousands(std::min<int64_t>(next, size())), with_thousands(size()));
      }
    }
    for (auto& worker : workers) worker.join();
    if (failure) std::rethrow_exception(failure);
  }

  int64_t limit_;  ///< The limit in bytes.
  bool is_partial_;
  bool is_frozen_;
  bool fills_at_start_ = false;
  std::string path_;  ///< The path of the file; empty when examples are kept in memory.
  std::unique_ptr<ExampleStore> store_;
};

STEPOP_REGISTER_DATASET(
    Cached, {"Another dataset's examples, each read once and kept, in memory or in a file."});

}  // namespace
}  // namespace stepop
