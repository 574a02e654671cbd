// The decisions of `stepop tune`, on made-up times with known noise.
#include "runtime/tools/tune/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
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

/// A machine with its own clock, which starts and portions advance.
class MadeUpWorkbench : public Workbench {
 public:
  MadeUpWorkbench(StepTime time, Noise noise, uint64_t seed, double seconds = 60)
      : seconds_(seconds), time_(std::move(time)), noise_(noise), random_(seed) {}

  std::unique_ptr<Subject> start(const Candidate& candidate) override {
    pass(start_seconds_);
    starts_.push_back(candidate.name());
    if (failing_.contains(candidate.name())) throw CandidateFailed("out of memory");
    return std::make_unique<MadeUp>(*this, candidate);
  }
  double seconds_left() const override { return seconds_ - now_; }
  void keep(double seconds) override { kept_ = seconds; }
  size_t room() const override { return room_; }
  void progress(const std::string&) override {}

  void set_time(StepTime time) { time_ = std::move(time); }

  double portion(const Candidate& candidate) {
    const double factor = time_(candidate.settings) / time_({});
    pass(portion_seconds_ * std::max(1.0, factor * slow_portions_));
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
  double slow_portions_ = 0;  ///< 1: a slower step makes the portion longer, too.
  double seconds_;
  double now_ = 0;
  size_t room_ = 3;
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
        : bench_(bench), candidate_(std::move(candidate)) {
      bench_.most_living_ = std::max(bench_.most_living_, ++bench_.living_);
    }
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

  void pass(double seconds) {
    now_ += seconds;
    if (seconds_left() >= kept_) return;
    now_ = seconds_ - kept_;
    throw TimeOver();
  }

  StepTime time_;
  Noise noise_;
  Random random_;
  double kept_ = 0;
};

std::vector<Candidate> usual_candidates() {
  return candidates_of({.settings = {{"num_threads", 2},
                                     {"onednn", true},
                                     {"channels_last", false},
                                     {"n_data_processes", 1},
                                     {"n_prefetch", 2},
                                     {"flush_denormals", false},
                                     {"thread_wait", "brief"},
                                     {"processes", 1}},
                        .has_images = true,
                        .cores = 2},
                       /*precision=*/false, /*processes=*/true);
}

TEST_CASE("on a GPU graphs of a step are tried first, and nothing of the CPU") {
  std::string names;
  for (const Candidate& candidate : candidates_of({.settings = {{"channels_last", false},
                                                                {"cuda_graph", false},
                                                                {"cudnn_benchmark", false},
                                                                {"n_data_processes", 1},
                                                                {"n_prefetch", 2},
                                                                {"processes", 1}},
                                    .is_cpu = false,
                                    .has_images = true,
                                    .cores = 4},
                                                  /*precision=*/true, /*processes=*/true)) {
    names += candidate.name() + "\n";
  }
  CHECK(names ==
        "cuda_graph true\nchannels_last true\ncudnn_benchmark true\nn_data_processes 0\n"
        "n_data_processes 4\nn_prefetch 8\nprecision bfloat16\n");
}

TEST_CASE("the other way in which a network can compute is tried first") {
  const Value::Map compiled{{"class", "Exported"}, {"path", "net.pt2"}, {"compiled", true}};
  const auto all =
      candidates_of({.settings = {{"num_threads", 1}}, .networks = {{"model", compiled}}},
                    /*precision=*/false, /*processes=*/false);
  REQUIRE_FALSE(all.empty());
  CHECK(all.front().name() == "model {class: Exported, path: net.pt2, compiled: true}");
  CHECK_FALSE(all.front().changes_results);
}

TuneResult search(MadeUpWorkbench& bench) {
  std::unique_ptr<Subject> present = bench.start({});
  return search_settings(usual_candidates(), std::move(present), bench.start_seconds_, bench);
}

bool has(const OrderedMap<Value>& settings, const std::string& key, const Value& value) {
  const Value* found = settings.find(key);
  return found != nullptr && *found == value;
}

/// Like LeNet at batch 4: one thread helps, no oneDNN helps, and both together help most.
double small_batch(const OrderedMap<Value>& settings) {
  double seconds = 1e-3;
  if (has(settings, "onednn", false)) seconds /= 1.25;
  if (has(settings, "num_threads", 1)) seconds /= 1.2;
  if (has(settings, "processes", 2)) seconds *= 2.5;
  if (has(settings, "channels_last", true)) seconds *= 1.1;
  if (has(settings, "thread_wait", "sleep")) seconds *= 1.3;
  return seconds;
}

/// Like LeNet at batch 64: everything else is slower.
double large_batch(const OrderedMap<Value>& settings) {
  double seconds = 3e-3;
  if (has(settings, "onednn", false)) seconds *= 1.6;
  if (has(settings, "num_threads", 1)) seconds *= 1.5;
  return seconds;
}

TEST_CASE("settings that help by themselves win together") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, seed);
    const TuneResult result = search(bench);
    CHECK(has(result.winner.settings, "num_threads", 1));
    CHECK(has(result.winner.settings, "onednn", false));
    CHECK(result.confirmed.low > 1.3);
    CHECK(result.confirmed.high < 1.8);
    CHECK(bench.living_ == 0);
    const size_t alone = usual_candidates().size();
    REQUIRE(result.rows.size() == alone + 1);
    CHECK(result.rows.front().candidate.settings == result.winner.settings);
  }
}

TEST_CASE("each setting is measured by itself, and only the best and all that help again") {
  MadeUpWorkbench bench(small_batch, {}, 1);
  search(bench);
  std::vector<std::string> expected{"as it is"};
  for (const auto& candidate : usual_candidates()) expected.push_back(candidate.name());
  for (const char* name : {"as it is", "onednn false", "num_threads 1, onednn false"}) {
    expected.emplace_back(name);
  }
  CHECK(bench.starts_ == expected);
}

TEST_CASE("settings that do not help each other leave the win to the best by itself") {
  const auto time = [](const OrderedMap<Value>& settings) {
    const bool either = has(settings, "onednn", false) || has(settings, "num_threads", 1);
    return either ? (has(settings, "onednn", false) ? 0.7e-3 : 0.75e-3) : 1e-3;
  };
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    MadeUpWorkbench bench(time, {.deviation = 0.02}, seed);
    CHECK(search(bench).winner.name() == "onednn false");
  }
}

TEST_CASE("settings that exclude each other are not put together") {
  const auto time = [](const OrderedMap<Value>& settings) {
    if (has(settings, "num_threads", 1)) return 0.8e-3;
    return has(settings, "thread_wait", "spin") ? 0.7e-3 : 1e-3;
  };
  MadeUpWorkbench bench(time, {.deviation = 0.01}, 1);
  CHECK(search(bench).winner.name() == "thread_wait spin");
  for (const auto& name : bench.starts_) CHECK(name != "num_threads 1, thread_wait spin");
}

TEST_CASE("nothing wins where the present settings are the best, whatever the noise") {
  for (const Noise& noise : {Noise{.deviation = 0.01}, Noise{.deviation = 0.1},
                             Noise{.deviation = 0.05, .burst_share = 0.2, .burst_factor = 3},
                             Noise{.deviation = 0.02, .drift_per_second = 0.02}}) {
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      CAPTURE(seed);
      CAPTURE(noise.deviation);
      MadeUpWorkbench bench(large_batch, noise, seed);
      CHECK(search(bench).winner.name() == "as it is");
    }
  }
}

TEST_CASE("where all settings are equal, a false winner is rarer than one in a hundred") {
  int winners = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const double deviation = seed % 3 == 0 ? 0.2 : seed % 3 == 1 ? 0.05 : 0.01;
    MadeUpWorkbench bench([](const auto&) { return 1e-3; }, {.deviation = deviation}, seed);
    if (!search(bench).winner.settings.empty()) ++winners;
  }
  CHECK(winners <= 3);
}

TEST_CASE("noise seldom keeps the search from the winner") {
  const auto found = [](const Noise& noise, double seconds) {
    int count = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      MadeUpWorkbench bench(small_batch, noise, seed);
      if (small_batch(search(bench).winner.settings) < seconds) ++count;
    }
    return count;
  };
  const double both = 1.01 * small_batch({{"onednn", false}, {"num_threads", 1}});
  const double one = 1.01 * small_batch({{"num_threads", 1}});
  CHECK(found({.deviation = 0.05}, both) >= 99);
  CHECK(found({.deviation = 0.02, .drift_per_second = 0.02}, both) >= 99);
  const Noise bursts{.deviation = 0.03, .burst_share = 0.1, .burst_factor = 3};
  CHECK(found(bursts, both) >= 60);
  CHECK(found(bursts, one) >= 90);
}

TEST_CASE("the search is over when its time is, however slow starts and portions are") {
  for (const double start : {0.1, 0.5, 2.0}) {
    for (const double portion : {0.02, 0.15, 0.6}) {
      for (const double limit : {10, 25, 40, 60, 300}) {
        CAPTURE(start);
        CAPTURE(portion);
        CAPTURE(limit);
        MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, 2, limit);
        bench.start_seconds_ = start;
        bench.portion_seconds_ = portion;
        const TuneResult result = search(bench);
        CHECK(bench.now_ <= limit);
        CHECK(bench.living_ == 0);
        CHECK(result.present.step_seconds > 0);
        for (const auto& name : result.not_tried) CHECK_FALSE(bench.portions_.contains(name));
        // The search uses the time that it has.
        if (limit >= 40 && start < 1 && portion < 0.5) {
          CHECK(has(result.winner.settings, "onednn", false));
          CHECK(result.not_tried.empty());
        }
      }
    }
  }
}

TEST_CASE("a portion that takes too long is cut, and the confirmation still has its time") {
  const auto time = [](const OrderedMap<Value>& settings) {
    if (has(settings, "thread_wait", "spin")) return 1.0;
    return has(settings, "onednn", false) ? 0.8e-3 : 1e-3;
  };
  MadeUpWorkbench bench(time, {.deviation = 0.02}, 2);
  bench.slow_portions_ = 1;
  const TuneResult result = search(bench);
  CHECK(bench.now_ <= 60);
  CHECK(result.winner.name() == "onednn false");
  REQUIRE(!result.not_tried.empty());
  CHECK(result.not_tried.back() == "thread_wait spin");
}

TEST_CASE("the result names what there was no time for") {
  MadeUpWorkbench bench(small_batch, {.deviation = 0.03}, 2, 12);
  const TuneResult result = search(bench);
  CHECK(!result.not_tried.empty());
  CHECK(result.not_tried.back() == "thread_wait spin");
  CHECK(bench.now_ <= 12);
}

TEST_CASE("what was faster and had no time to be measured again is named as such") {
  const auto time = [](const OrderedMap<Value>& settings) {
    return has(settings, "num_threads", 1) ? 0.5e-3 : 1e-3;
  };
  MadeUpWorkbench bench(time, {.deviation = 0.01}, 3, 15);
  bench.portion_seconds_ = 0.6;
  const TuneResult result = search(bench);
  CHECK(result.winner.settings.empty());
  CHECK(result.not_confirmed.empty());
  CHECK(result.not_measured_again == std::vector<std::string>{"num_threads 1"});
}

TEST_CASE("what was faster only once does not win") {
  // Processes with channels_last are fast until they are started again.
  MadeUpWorkbench bench({}, {}, 3);
  const auto time = [&bench](const OrderedMap<Value>& settings) {
    if (settings.empty()) return 1e-3;
    const auto starts = std::ranges::count(bench.starts_, "channels_last true");
    return has(settings, "channels_last", true) && starts == 1 ? 0.5e-3 : 1.2e-3;
  };
  bench.set_time(time);
  const TuneResult result = search(bench);
  CHECK(result.winner.settings.empty());
  CHECK(result.not_confirmed == std::vector<std::string>{"channels_last true"});
}

TEST_CASE("a candidate that fails is a row with its reason, at its start or later") {
  MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, 5);
  bench.failing_ = {"num_threads 1, processes 2"};
  bench.failing_later_ = {"channels_last true"};
  const TuneResult result = search(bench);
  CHECK(has(result.winner.settings, "onednn", false));
  std::map<std::string, std::string> failures;
  for (const auto& row : result.rows) {
    if (!row.failure.empty()) failures[row.candidate.name()] = row.failure;
  }
  CHECK(failures ==
        std::map<std::string, std::string>{{"num_threads 1, processes 2", "out of memory"},
                                           {"channels_last true", "it was killed"}});
  CHECK(!result.rows.back().failure.empty());  // failed rows come last
}

TEST_CASE("present settings that fail are an error") {
  MadeUpWorkbench bench(small_batch, {}, 5);
  bench.failing_later_ = {"as it is"};
  CHECK_THROWS_WITH_AS(search(bench), "it was killed", CandidateFailed);
}

TEST_CASE("no more processes live at once than there is room for") {
  for (const size_t room : {1, 2, 3}) {
    CAPTURE(room);
    MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, 5, 180);
    bench.room_ = room;
    const TuneResult result = search(bench);
    CHECK(bench.most_living_ <= std::max<size_t>(room, 2) + 1);  // two are confirmed
    CHECK(!result.winner.settings.empty());
  }
}

TEST_CASE("clearly slower candidates get few portions") {
  MadeUpWorkbench bench(small_batch, {.deviation = 0.02}, 5);
  search(bench);
  CHECK(bench.portions_.at("num_threads 1, processes 2") == 6);
  CHECK(bench.portions_.at("thread_wait sleep") == 6);
  CHECK(bench.portions_.at("onednn false") > 30);
}

}  // namespace search_test
}  // namespace stepop
