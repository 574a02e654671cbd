#include "runtime/core/measure/profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "runtime/core/base/random.h"
#include "runtime/core/log/profile_text.h"
#include "tests/python.h"

namespace stepop {
namespace measure_profile_test {

/// `training 1 (a 2 (b 2) c 1)`: the parts with how often they came.
std::string tree(const Profile::Part& part) {
  std::string text = part.name + " " + std::to_string(part.count);
  std::string within;
  for (const auto& inner : part.parts) within += (within.empty() ? "" : " ") + tree(*inner);
  return within.empty() ? text : text + " (" + within + ")";
}

TEST_CASE("spans of one name within the same part are one part") {
  Profile profile;
  for (int step = 0; step < 2; ++step) {
    const Span outer(&profile, "a");
    const Span inner(&profile, {"b", "/", "c"});
  }
  { const Span other(&profile, "b/c"); }
  profile.stop();
  CHECK(tree(profile.whole()) == "training 1 (a 2 (b/c 2) b/c 1)");
  const auto& a = *profile.whole().parts[0];
  CHECK(a.total >= a.parts[0]->total);
  CHECK(profile.whole().total >= a.total);
}

TEST_CASE("a span ends by an exception too") {
  Profile profile;
  try {
    const Span outer(&profile, "a");
    const Span inner(&profile, "b");
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  { const Span next(&profile, "c"); }
  profile.stop();
  CHECK(tree(profile.whole()) == "training 1 (a 1 (b 1) c 1)");
}

TEST_CASE("without a profile spans do nothing") {
  const Span span(nullptr, {"a", "b"});
  const ThreadSpan other(nullptr, "thread", "work");
}

TEST_CASE("the device is waited for before the clock is read") {
  int waits = 0;
  Profile profile([&] { ++waits; });
  { const Span span(&profile, "a"); }
  CHECK(waits == 2);
  CHECK(profile.waits_for_device());
  CHECK_FALSE(Profile().waits_for_device());
}

TEST_CASE("a device that fails while a span ends is left to its next use") {
  bool fails = false;
  Profile profile([&] {
    if (fails) throw std::runtime_error("device lost");
  });
  {
    const Span span(&profile, "a");
    fails = true;
  }
  CHECK_THROWS(profile.begin({"b"}));
  fails = false;
  profile.stop();
  CHECK(profile.whole().parts[0]->count == 1);
}

TEST_CASE("the events of the first steps are kept, of later ones the sums") {
  Profile profile;
  for (int64_t step = 0; step < Profile::kTracedSteps + 20; ++step) {
    { const Span span(&profile, "a"); }
    const ThreadSpan span(&profile, "worker", "prepare");
    profile.step_done();
  }
  profile.stop();
  CHECK(profile.whole().parts[0]->count == Profile::kTracedSteps + 20);
  CHECK(profile.steps() == Profile::kTracedSteps + 20);
  CHECK(profile.traced_steps() == Profile::kTracedSteps);
  CHECK(profile.threads() == std::vector<std::string>({"training loop", "worker"}));
  int64_t of_loop = 0;
  for (const auto& event : profile.events()) of_loop += event.thread == 0;
  CHECK(of_loop == Profile::kTracedSteps);
  CHECK(profile.events().back().step < Profile::kTracedSteps);
}

TEST_CASE("a step with very many events does not fill the memory") {
  Profile profile;
  profile.step_done();
  for (size_t i = 0; i < Profile::kMostEvents + 10; ++i) const Span span(&profile, "a");
  profile.step_done();
  profile.stop();
  CHECK(profile.events().size() == Profile::kMostEvents);
  CHECK(profile.traced_steps() == 1);
}

TEST_CASE("threads may add while the profile ends") {
  Profile profile;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&profile, name = "worker " + std::to_string(i)] {
      for (int k = 0; k < 300; ++k) const ThreadSpan span(&profile, name, "work");
    });
  }
  for (int i = 0; i < 100; ++i) const Span span(&profile, "a");
  profile.stop();
  const size_t count = profile.events().size();
  for (auto& thread : threads) thread.join();
  CHECK(profile.events().size() == count);
}

TEST_CASE("the table shows shares that add up, the longest part first, and the rest") {
  Profile profile;
  for (int step = 0; step < 3; ++step) {
    { const Span span(&profile, "short"); }
    {
      const Span span(&profile, "long");
      const Span inner(&profile, "inner");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    profile.step_done();
  }
  profile.stop();
  const std::string table = profile_table(profile);
  CHECK(table.starts_with("part "));
  CHECK(run_python(R"(
import sys
rows = sys.argv[1].splitlines()
print(rows[0].split())
print([row[:9].rstrip() for row in rows[1:]])
cells = [row[9:].split() for row in rows[1:]]
share = [float(row[0]) for row in cells]
print(abs(share[0] + share[2] + share[3] - 100) < 0.3, share[1] <= share[0], share[0] > share[2])
print([row[3] for row in cells[:3]])
a_step, median, total = (float(cells[0][i]) for i in (2, 4, 5))
print(a_step >= 100, median >= 99, abs(total - 3 * a_step / 1000) < 0.001)
)",
                   {table}) ==
        "['part', 'of', 'the', 'time', 'ms', 'a', 'step', 'times', 'median', 'ms', 'total', 's']\n"
        "['long', '  inner', 'short', 'the rest']\nTrue True True\n['3', '3', '3']\n"
        "True True True\n");
}

TEST_CASE("sums over processes have a line below the table, when there were any") {
  Profile profile;
  CHECK(profile_table(profile).find("processes") == std::string::npos);
  for (int step = 0; step < 4; ++step) {
    profile.add_sums(std::chrono::milliseconds(3), std::chrono::milliseconds(2));
    profile.step_done();
  }
  CHECK(profile_table(profile).ends_with(
      "\nsums of gradients over the processes: 3.000 ms a step, 67 % of it beside the backward "
      "pass"));
}

TEST_CASE("the trace is JSON as Chrome reads it, whatever the names are") {
  Profile profile;
  {
    const Span outer(&profile, "a \"quoted\"\nname");
    const Span inner(&profile, "\xff no UTF-8");
    const ThreadSpan other(&profile, "w\\1", "work");
  }
  profile.stop();
  CHECK(run_python(R"(
import json, sys
trace = json.loads(sys.argv[1])
events = trace['traceEvents']
print([(e['tid'], e['args']['name']) for e in events if e['ph'] == 'M'])
spans = [e for e in events if e['ph'] == 'X']
print(sorted(e['name'] for e in spans) == ['a "quoted"\nname', 'work', '\ufffd no UTF-8'])
outer = max(spans, key=lambda e: e['dur'])
print(all(outer['ts'] <= e['ts'] and e['ts'] + e['dur'] <= outer['ts'] + outer['dur'] + 0.002
          for e in spans), [e['args']['step'] for e in spans])
)",
                   {chrome_trace(profile)}) ==
        "[(0, 'training loop'), (1, 'w\\\\1')]\nTrue\nTrue [0, 0, 0]\n");
}

using std::chrono::nanoseconds;

/// What the histogram of these times has as its median, in nanoseconds.
int64_t median_of(const std::vector<int64_t>& times) {
  TimeHistogram histogram;
  for (const int64_t time : times) histogram.add(nanoseconds(time));
  return histogram.median().count();
}

TEST_CASE("the median of few times") {
  CHECK(median_of({}) == 0);
  CHECK(median_of({0}) == 0);
  CHECK(median_of({-5}) == 0);
  CHECK(median_of({255}) == 255);
  CHECK(median_of({9, 1, 5}) == 5);
  CHECK(median_of({4, 1, 3, 2}) == 2);
}

TEST_CASE("every time is known to within 0.4 %, from nanoseconds to centuries") {
  for (int64_t time = 1; time < std::numeric_limits<int64_t>::max() / 3; time += time / 5 + 1) {
    CAPTURE(time);
    const auto found = static_cast<double>(median_of({time}));
    CHECK(std::abs(found / static_cast<double>(time) - 1) < 0.004);
  }
  CHECK(median_of({std::numeric_limits<int64_t>::max()}) > 0);
}

TEST_CASE("the median of many times is that of the sorted ones") {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> times(static_cast<size_t>(1 + random.below(2000)));
    for (auto& time : times) time = static_cast<int64_t>(std::exp(random.uniform() * 30));
    const double found = static_cast<double>(median_of(times));
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
    std::nth_element(times.begin(), middle, times.end());
    CAPTURE(times.size());
    CHECK(std::abs(found / static_cast<double>(*middle) - 1) < 0.004);
  }
}

}  // namespace measure_profile_test
}  // namespace stepop
