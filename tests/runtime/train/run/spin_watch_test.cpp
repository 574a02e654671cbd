#include "runtime/train/run/spin_watch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>

namespace stepop {
namespace spin_watch_test {

constexpr double kStep = 0.2;

/// For how many steps of quiet time there is no spinning.
int steps_until_spinning(SpinPolicy& policy) {
  for (int steps = 1; steps < 1000; ++steps) {
    if (policy.note(kStep, 0.001)) return steps;
  }
  return -1;
}

TEST_CASE("threads spin on a quiet machine, and stop when they wait for a core") {
  SpinPolicy policy(2);
  for (int i = 0; i < 1000; ++i) CHECK(policy.note(kStep, 0.01 * kStep));
  CHECK_FALSE(policy.note(kStep, 0.5 * kStep));
  for (int i = 0; i < 20; ++i) CHECK_FALSE(policy.note(kStep, 0.5 * kStep));
  CHECK(steps_until_spinning(policy) == 5);
}

TEST_CASE("each short time of spinning makes the next wait longer, up to a minute") {
  SpinPolicy policy(2);
  for (int i = 0; i < 1000; ++i) policy.note(kStep, 0);
  int last = 0;
  for (const int expected : {5, 10, 20, 40, 80, 160, 300, 300}) {
    CHECK_FALSE(policy.note(kStep, 0.5 * kStep));
    last = steps_until_spinning(policy);
    CHECK(std::abs(last - expected) <= 1);  // by rounding
  }
  for (int i = 0; i < 200; ++i) CHECK(policy.note(kStep, 0));
  CHECK_FALSE(policy.note(kStep, 0.5 * kStep));
  CHECK(steps_until_spinning(policy) == 5);
}

TEST_CASE(
    "time without others must be in one piece, and many threads wait a little by themselves") {
  SpinPolicy policy(2);
  policy.note(kStep, kStep);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(policy.note(kStep, i % 4 == 0 ? 0.1 * kStep : 0));
  CHECK(SpinPolicy(64).note(kStep, 0.4 * kStep));
  CHECK_FALSE(SpinPolicy(64).note(kStep, 0.6 * kStep));
}

/// Threads of this process.
size_t count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

bool becomes(size_t count) {
  for (int i = 0; i < 6000 && count_threads() != count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return count_threads() == count;
}

TEST_CASE("a crowd makes one thread more than there are cores, and goes as it came") {
  const size_t before = count_threads();
  const size_t cores = std::thread::hardware_concurrency();
  std::optional<Crowd> crowd(std::in_place, 1);
  CHECK(becomes(before + 1 + cores));
  crowd.reset();
  CHECK(becomes(before));
}

TEST_CASE("a watch ends at once") {
  const size_t before = count_threads();
  { const SpinWatch watch(2); }
  CHECK(becomes(before));
}

}  // namespace spin_watch_test
}  // namespace stepop
