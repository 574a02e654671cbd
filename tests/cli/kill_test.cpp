// The real binary, disturbed at random and started again, must end with the bits of a run that
// nobody disturbed. `make torture N=200` does it as often as one likes.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/cli/torture.h"

namespace stepop {
namespace kill_test {

using Clock = std::chrono::steady_clock;
using Counts = std::array<int, kPhases>;

std::string summary(const Counts& counts, uint64_t seed) {
  std::string text = fmt::format("seed {}:", seed);
  for (int i = 0; i < kPhases; ++i) {
    text += fmt::format("{} {} in {}", i > 0 ? "," : "", counts[static_cast<size_t>(i)],
                        phase_name(static_cast<Phase>(i)));
  }
  return text;
}

/// Sends a signal when the run is in the wanted phase, or a random time later.
class Killer {
 public:
  Killer(const TortureRun& run, Phase wanted, int signal, Random& random)
      : run_(run), wanted_(wanted), signal_(signal) {
    // A start takes some 200 ms to load, a step or a callback less than one.
    const double most = wanted == Phase::kLoading ? 0.15 : wanted == Phase::kStep ? 0.3 : 0.001;
    delay_ = std::chrono::duration<double>(random.uniform() * most);
    which_ = static_cast<size_t>(random.below(run.torture().processes + 1));
  }

  void operator()(int pid) {
    if (is_done_) return;
    if (!since_ && (wanted_ == Phase::kLoading || run_.phase() == wanted_)) since_ = Clock::now();
    if (!since_ || Clock::now() - *since_ < delay_) return;
    phase_ = run_.phase();
    kill(target(pid), signal_);
    is_done_ = true;
  }

  bool is_done() const { return is_done_; }

  /// Where the run was when it got the signal.
  Phase phase() const { return phase_; }

 private:
  /// One of several processes, or their parent.
  int target(int pid) const {
    if (run_.torture().processes == 1) return pid;
    const std::vector<int> children = children_of(pid);
    return which_ < children.size() ? children[which_] : pid;
  }

  const TortureRun& run_;
  Phase wanted_;
  int signal_;
  size_t which_ = 0;
  std::chrono::duration<double> delay_{};
  std::optional<Clock::time_point> since_;
  bool is_done_ = false;
  Phase phase_ = Phase::kLoading;
};

/// One phase after the other; after `count` disturbances the first that none of them hit.
std::optional<Phase> next_phase(int done, int count, const Counts& counts) {
  constexpr Phase kOrder[] = {Phase::kStep, Phase::kCheckpoint, Phase::kEvaluation,
                              Phase::kCallback, Phase::kLoading};
  if (done < count) return kOrder[done % kPhases];
  const auto missed = std::find(counts.begin(), counts.end(), 0);
  if (missed == counts.end()) return std::nullopt;
  return static_cast<Phase>(missed - counts.begin());
}

/// Disturbs runs `count` times, then until every phase was hit (a signal that is meant for a phase
/// of a millisecond often comes after it), and finishes the last one. Each run must end as the
/// undisturbed one.
void torture(const Torture& what, int signal, int count) {
  const uint64_t seed = torture_seed();
  Random random(seed);
  CAPTURE(seed);
  // When one of several processes dies, the others are asked to stop.
  const bool is_asked = signal == SIGTERM || what.processes > 1;
  Counts counts{};
  auto run = std::make_unique<TortureRun>(what);
  int done = 0;
  for (int starts = 0; starts < 2 * count + 200; ++starts) {
    const auto wanted = next_phase(done, count, counts);
    if (!wanted) break;
    Killer killer(*run, *wanted, signal, random);
    const ProcessEnd end = run->start([&](int pid) { killer(pid); });
    CAPTURE(end.err);
    // The others end by the death of one, with an error.
    const bool is_ended = what.processes > 1 && killer.is_done() && end.exit_code == 1;
    const bool is_killed = end.signal == signal || end.exit_code == 128 + signal || is_ended;
    if (is_killed) {
      // What SIGKILL left in the files tells more exactly where it hit.
      const Phase phase = signal == SIGKILL ? run->phase() : killer.phase();
      ++counts[static_cast<size_t>(phase)];
      ++done;
      continue;
    }
    REQUIRE(end.signal == 0);
    REQUIRE(end.exit_code == 0);
    check_same(*run, is_asked);
    run = std::make_unique<TortureRun>(what);
  }
  const ProcessEnd end = run->start();
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  check_same(*run, is_asked);
  MESSAGE(fmt::format("{} {}: {}", done, signal == SIGKILL ? "kills" : "SIGTERM",
                      summary(counts, seed)));
  for (const int hits : counts) CHECK(hits > 0);
}

TEST_CASE("killed with SIGKILL in every phase and started again, a run ends with the same bits") {
  torture(torture_of_digits(), SIGKILL, torture_count(10));
}

TEST_CASE("stopped with SIGTERM in every phase and started again, a run ends with the same bits") {
  torture(torture_of_digits(), SIGTERM, torture_count(5));
}

TEST_CASE(
    "any of several processes is killed in every phase, and the run ends with the same bits") {
  torture(torture_of_processes(), SIGKILL, torture_count(5));
}

TEST_CASE("any of several processes is asked to stop, and the run ends with the same bits") {
  torture(torture_of_processes(), SIGTERM, torture_count(5));
}

TEST_CASE("killed with SIGKILL in every phase, a VUNet's training ends with the same bits") {
  torture(torture_of_vunet(), SIGKILL, torture_count(5));
}

TEST_CASE("killed with SIGKILL in every phase, a GAN of a config ends with the same bits") {
  torture(torture_of_toy_srgan(), SIGKILL, torture_count(5));
}

TEST_CASE("killed with SIGKILL in every phase, a pix2pix with averages ends with the same bits") {
  torture(torture_of_pix2pix(), SIGKILL, torture_count(5));
}

TEST_CASE("killed with SIGKILL in every phase, a flow and its samples end with the same bits") {
  torture(torture_of_flow(), SIGKILL, torture_count(5));
}

TEST_CASE(
    "killed with SIGKILL in every phase, an autoencoder and its rival end with the same bits") {
  torture(torture_of_autoencoder(), SIGKILL, torture_count(5));
}

TEST_CASE("on a disk that is full again and again, a run says so and ends with the same bits") {
  const uint64_t seed = torture_seed();
  Random random(seed);
  CAPTURE(seed);
  TortureRun run(torture_of_digits());
  int failures = 0;
  const int count = torture_count(5);
  for (int i = 0; i < count; ++i) {
    // From less than a line of the log to more than a checkpoint.
    const double part = (i + random.uniform()) / count;
    const auto limit = static_cast<int64_t>(std::exp(std::log(200.0) + part * 8));
    CAPTURE(limit);
    const ProcessEnd end = run.start({}, limit);
    CAPTURE(end.err);
    CHECK(end.signal == 0);
    if (end.exit_code == 0) continue;
    ++failures;
    CHECK(end.exit_code == 1);
    CHECK(end.err.starts_with("stepop: "));
    CHECK(end.err.find("File too large") != std::string::npos);
    const std::string next = end.err.substr(end.err.find('\n') + 1);
    // What fails before the run has its folder, or this start its lock, is told alone.
    if (run.root().empty()) CHECK(next == "");
    if (!next.empty()) {
      const char* how = checkpoint_steps(run.root() + "/train/checkpoints").empty()
                            ? "nothing was saved yet; once the cause is fixed, start again with:  "
                            : "what was saved is whole; once the cause is fixed, resume with:  ";
      CHECK(next.starts_with(how));
      CHECK(next.ends_with(std::filesystem::path(run.root()).filename().string() + " -t\n"));
    }
  }
  CHECK(failures > 0);
  const ProcessEnd end = run.start();
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  check_same(run, /*was_asked_to_stop=*/false);
}

}  // namespace kill_test
}  // namespace stepop
