// The decisions of `stepop tune`, on made-up times with noise that is known.
#include "runtime/tools/tune/search.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "runtime/core/base/random.h"
#include "runtime/tools/tune/candidate.h"

namespace stepop {
namespace search_test {

/// The seconds of a step without noise.
using StepTime = std::function<double(const OrderedMap<Value>& settings)>;

struct Noise {
  double deviation = 0;         ///< Of the logarithm of each portion's time.
  double burst_share = 0;       ///< Portions that another program disturbs,
  double burst_factor = 1;      ///< which take so many times longer.
  double drift_per_second = 0;  ///< The machine becomes slower by this factor.
};

/// A machine with a clock of its own, which starts and portions move on.
class MadeUpWorkbench : public Workbench {
 public:
  MadeUpWorkbench(StepTime time, Noise noise, uint64_t seed)
      : time_(std::move(time)), noise_(noise), random_(seed) {}

  std::unique_ptr<Subject> start(const Candidate& candidate) override {
    now_ += start_seconds_;
    ++living_;
    most_living_ = std::max(most_living_, living_);
    starts_.push_back(candidate.name());
    if (failing_.contains(candidate.name())) {
      --living_;
      throw CandidateFailed("out of memory");
    }
    return std::make_unique<MadeUp>(*this, candidate);
  }
  double seconds() const override { return now_; }
  size_t room() const override { return room_; }
  void progress(const std::string&) override {}

  double portion(const Candidate& candidate) {
    now_ += portion_seconds_;
    ++portions_[candidate.name()];
    // Box and Muller.
    const double normal = std::sqrt(-2 * std::log(1 - random_.uniform())) *
                          std::cos(2 * 3.14159265358979 * random_.uniform());
    double seconds = time_(candidate.settings) * std::exp(noise_.deviation * normal) *
                     std::pow(1 + noise_.drift_per_second, now_);
    if (random_.uniform() < noise_.burst_share) seconds *= noise_.burst_factor;
    return seconds;
  }

  double start_seconds_ = 0.5;
  double portion_seconds_ = 0.15;
  size_t room_ = 20;
  size_t living_ = 0;
  size_t most_living_ = 0;
  std::set<std::string> failing_;
  std::set<std::string> failing_later_;
  std::vector<std::string> starts_;
  std::map<std::string, int> portions_;

 private:
  class MadeUp : public Subject {
   public:
    MadeUp(MadeUpWorkbench& bench, Candidate candidate)
        : bench_(bench), candidate_(std::move(candidate)) {}
    ~MadeUp() override { --bench_.living_; }
    double measure() override {
      if (bench_.failing_later_.contains(candidate_.name())) throw CandidateFailed("it was killed");
      return bench_.portion(candidate_);
    }
    double memory() const override { return 1e8; }

   private:
    MadeUpWorkbench& bench_;
    Candidate candidate_;
  };

  StepTime time_;
  Noise noise_;
  Random random_;
  double now_ = 0;
};

constexpr double kMinute = 60;

std::vector<Alternatives> usual_axes() {
  return alternatives_of(
      {.threads = 2, .has_images = true, .workers = 1, .thread_wait = "brief", .cores = 2},
      /*precision=*/false, /*processes=*/true);
}

bool has(const OrderedMap<Value>& settings, const std::string& key, const Value& value) {
  const Value* found = settings.find(key);
  return found != nullptr && *found == value;
}

/// LeNet at batch 4, about: one thread and no oneDNN help, most of all together.
double small_batch(const OrderedMap<Value>& settings) {
  double seconds = 1e-3;
  if (has(settings, "onednn", false)) seconds /= 1.25;
  if (has(settings, "num_threads", 1)) seconds /= 1.2;
  if (has(settings, "processes", 2)) seconds *= 2.5;
  if (has(settings, "channels_last", true)) seconds *= 1.1;
  if (has(settings, "thread_wait", "sleep")) seconds *= 1.3;
  return seconds;
}

/// At batch 64: everything else is slower.
double large_batch(const OrderedMap<Value>& settings) {
  double seconds = 3e-3;
  if (has(settings, "onednn", false)) seconds *= 1.6;
  if (has(settings, "num_threads", 1)) seconds *= 1.5;
  return seconds;
}

TEST_CASE("settings that help are found together, and no others with them") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    MadeUpWorkbench bench(small_batch, {.deviation = 0.03}, seed);
    const TuneResult result = search_settings(usual_axes(), bench, kMinute, 1);
    CHECK(result.winner.name() == "num_threads 1, onednn false");
    CHECK(result.confirmed.low > 1.3);
    CHECK(result.confirmed.high < 1.8);
    CHECK(bench.seconds() <= kMinute);
    CHECK(bench.living_ == 0);
  }
}

TEST_CASE("nothing is named where the present settings are the best, whatever the noise") {
  for (const Noise& noise : {Noise{.deviation = 0.01}, Noise{.deviation = 0.1},
                             Noise{.deviation = 0.05, .burst_share = 0.2, .burst_factor = 3},
                             Noise{.deviation = 0.02, .drift_per_second = 0.02}}) {
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      CAPTURE(seed);
      CAPTURE(noise.deviation);
      MadeUpWorkbench bench(large_batch, noise, seed);
      const TuneResult result = search_settings(usual_axes(), bench, kMinute, 1);
      CHECK(result.winner.name() == "as it is");
    }
  }
}

TEST_CASE("where all settings are equal, a false winner is rarer than one in a hundred") {
  int winners = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const double deviation = seed % 3 == 0 ? 0.2 : seed % 3 == 1 ? 0.05 : 0.01;
    MadeUpWorkbench bench([](const auto&) { return 1e-3; }, {.deviation = deviation}, seed);
    const TuneResult result = search_settings(usual_axes(), bench, kMinute, 1);
    if (!result.winner.settings.empty()) ++winners;
  }
  CHECK(winners <= 3);
}

TEST_CASE("two searches name the same winner, or one whose lead they call noise") {
  // Of one axis two values that are nearly equal, and a third that helps a little.
  const auto time = [](const OrderedMap<Value>& settings) {
    double seconds = small_batch(settings);
    if (has(settings, "thread_wait", "spin")) seconds /= 1.15;
    if (has(settings, "n_prefetch", 8)) seconds /= 1.01;
    return seconds;
  };
  std::map<std::string, int> winners;
  std::vector<TuneResult> results;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    MadeUpWorkbench bench(time, {.deviation = 0.05}, seed);
    results.push_back(search_settings(usual_axes(), bench, 1.25 * kMinute, 1));
  }
  const auto allows = [](const TuneResult& result, const TuneResult& other) {
    if (result.winner.settings == other.winner.settings) return true;
    return std::ranges::any_of(result.rows, [&](const TunedRow& row) {
      return row.candidate.settings == other.winner.settings && row.is_as_fast;
    });
  };
  int disagreements = 0;
  for (size_t i = 1; i < results.size(); ++i) {
    if (!allows(results[i - 1], results[i]) && !allows(results[i], results[i - 1])) ++disagreements;
  }
  CHECK(disagreements == 0);
  // None of them is far from the best.
  const double best = small_batch({{"onednn", false}, {"num_threads", 1}});
  for (const TuneResult& result : results) CHECK(time(result.winner.settings) < 1.05 * best);
}

TEST_CASE("the search is over when its time is, however slow starts and portions are") {
  for (const double start : {0.1, 0.5, 2.0}) {
    for (const double portion : {0.02, 0.15, 0.6}) {
      for (const double limit : {10, 25, 40, 60, 300}) {
        CAPTURE(start);
        CAPTURE(portion);
        CAPTURE(limit);
        MadeUpWorkbench bench(small_batch, {.deviation = 0.03}, 2);
        bench.start_seconds_ = start;
        bench.portion_seconds_ = portion;
        const TuneResult result = search_settings(usual_axes(), bench, limit, 1);
        CHECK(bench.seconds() <= limit);
        CHECK(result.present.step_seconds > 0);
        for (const auto& name : result.not_tried) CHECK_FALSE(bench.portions_.contains(name));
        // What there is time for is used.
        if (limit >= 40 && start < 1 && portion < 0.5) {
          CHECK(result.winner.name() == "num_threads 1, onednn false");
          CHECK(result.not_tried.empty());
        }
      }
    }
  }
}

TEST_CASE("what there was no time for is named") {
  MadeUpWorkbench bench(small_batch, {.deviation = 0.03}, 2);
  const TuneResult result = search_settings(usual_axes(), bench, 12, 1);
  CHECK(!result.not_tried.empty());
  CHECK(result.not_tried.back() == "flush_denormals true");
  CHECK(bench.seconds() <= 12);
}

TEST_CASE("the same noise gives the same search") {
  const auto search = [] {
    MadeUpWorkbench bench(small_batch, {.deviation = 0.05}, 7);
    const TuneResult result = search_settings(usual_axes(), bench, kMinute, 1);
    std::string text = result.winner.name();
    for (const auto& row : result.rows)
      text += fmt::format("\n{} {}", row.candidate.name(), row.speed.median);
    for (const auto& name : bench.starts_) text += "\n" + name;
    return text;
  };
  CHECK(search() == search());
}

TEST_CASE("what was faster only once is no winner") {
  // Its processes are fast until they are started again.
  int starts = 0;
  class OnceFast : public MadeUpWorkbench {
   public:
    using MadeUpWorkbench::MadeUpWorkbench;
    std::unique_ptr<Subject> start(const Candidate& candidate) override {
      if (has(candidate.settings, "channels_last", true)) ++*starts_of_one;
      return MadeUpWorkbench::start(candidate);
    }
    int* starts_of_one = nullptr;
  };
  const auto time = [&starts](const OrderedMap<Value>& settings) {
    const bool is_lucky =
        has(settings, "channels_last", true) && settings.size() == 1 && starts == 1;
    return is_lucky ? 0.5e-3 : settings.empty() ? 1e-3 : 1.2e-3;
  };
  OnceFast bench(time, {.deviation = 0.02}, 3);
  bench.starts_of_one = &starts;
  const TuneResult result = search_settings(usual_axes(), bench, kMinute, 1);
  CHECK(result.winner.settings.empty());
  CHECK(result.not_confirmed == std::vector<std::string>{"channels_last true"});
}

TEST_CASE("a candidate that fails is a row with its reason, at its start or later") {
  MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, 5);
  bench.failing_ = {"num_threads 1, processes 2"};
  bench.failing_later_ = {"channels_last true"};
  const TuneResult result = search_settings(usual_axes(), bench, kMinute, 1);
  CHECK(result.winner.name() == "num_threads 1, onednn false");
  std::map<std::string, std::string> failures;
  for (const auto& row : result.rows) {
    if (!row.failure.empty()) failures[row.candidate.name()] = row.failure;
  }
  CHECK(failures ==
        std::map<std::string, std::string>{{"num_threads 1, processes 2", "out of memory"},
                                           {"channels_last true", "it was killed"}});
  CHECK(!result.rows.back().failure.empty());  // they come last
}

TEST_CASE("present settings that fail are an error") {
  MadeUpWorkbench bench(small_batch, {}, 5);
  bench.failing_ = {"as it is"};
  CHECK_THROWS_WITH_AS(search_settings(usual_axes(), bench, kMinute, 1), "out of memory",
                       CandidateFailed);
}

TEST_CASE("no more processes live at once than there is room for") {
  for (const size_t room : {1, 2, 4}) {
    CAPTURE(room);
    MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, 5);
    bench.room_ = room;
    const TuneResult result = search_settings(usual_axes(), bench, 3 * kMinute, 1);
    CHECK(bench.most_living_ <= std::max<size_t>(room, 2) + 1);
    CHECK(!result.winner.settings.empty());
  }
}

TEST_CASE("clearly slower candidates get few portions") {
  MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, 5);
  search_settings(usual_axes(), bench, kMinute, 1);
  CHECK(bench.portions_.at("num_threads 1, processes 2") == 3);
  CHECK(bench.portions_.at("thread_wait sleep") == 3);
  CHECK(bench.portions_.at("onednn false") > 8);
}

}  // namespace search_test
}  // namespace stepop
