// Signals that arrive where a run may stay for long, with the real main and components that take
// minutes.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>

#include "runtime/train/run/signals.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/same_state.h"

namespace stepop {
namespace cli_signals_test {

constexpr const char* kSlow = "'" STEPOP_BINARY_DIR "/stepop_slow'";
constexpr const char* kSlowConfig = R"(
model: !replace {class: MLP, inputs: 64, hidden: [16]}
datasets:
  train: !replace {class: SlowDataset, seconds: 1e-3, stuck: stuck_train, dataset: {class: Synthetic, size: 64, shape: [1, 8, 8]}}
  validation: !replace {class: SlowDataset, seconds: 1e-3, stuck: stuck_validation, dataset: {class: Synthetic, size: 64, shape: [1, 8, 8], seed: 1}}
batch_size: 8
num_steps: 40
log_ops: [train/log_op]
num_threads: 1
n_data_processes: 2
eval_hook: {eval_callbacks: {slow: slow_callback}}
)";

/// Trains until the thing that `stuck` names is inside, and sends a signal then.
CommandResult stop_in(const ScratchFolder& folder, const std::string& stuck, int signal) {
  const std::string run = only_run(folder);
  const std::string arguments =
      run.empty() ? fmt::format("-n s -b {} slow.yaml -t", kConfig) : fmt::format("-p {} -t", run);
  folder.write("slow.yaml", kSlowConfig);
  // The log tells when the training has begun: nothing is stuck before.
  const std::string script = fmt::format(
      "export OMP_NUM_THREADS=1\n"
      "{} {} &\n"
      "until grep -qs 'step 1/' logs/*/train/log.txt; do sleep 0.01; done\n"
      "touch {}\n"
      "for ((i = 0; i < 6000; ++i)); do [ -e {}.inside ] && break; sleep 0.01; done\n"
      "kill -{} $!; wait $!; code=$?\n"
      "rm {} {}.inside; exit $code\n",
      kSlow, arguments, stuck, stuck, signal, stuck, stuck);
  return run_in(folder, script);
}

/// What a run ends with that nothing disturbed.
const State& whole() {
  static const State state = [] {
    const ScratchFolder folder;
    folder.write("slow.yaml", kSlowConfig);
    run_well(folder, fmt::format("{} -n s -b CONFIG slow.yaml -t", kSlow));
    return state_after(folder, 40);
  }();
  return state;
}

void check_signal_in(const std::string& stuck, int signal) {
  CAPTURE(stuck);
  CAPTURE(signal);
  const ScratchFolder folder;
  const CommandResult result = stop_in(folder, stuck, signal);
  const std::string run = only_run(folder);
  CHECK(result.exit_code == 128 + signal);
  CHECK(without_busy(result.err) == "");
  CHECK_FALSE(std::filesystem::exists(folder.path(stuck + ".over")));  // nobody waited for it
  CHECK(lines_of(result.out).back() ==
        fmt::format("saved; resume with:  {}/stepop_slow -p {} -t", STEPOP_BINARY_DIR, run));
  CHECK(result.out.find(fmt::format("ended: {} arrived\n", signal_name(signal))) !=
        std::string::npos);
  CHECK(read_bytes(folder.path(run) + "/train/process.json").find("\"stopped\"") !=
        std::string::npos);
  const CommandResult rest = run_well(folder, fmt::format("{} -p {} -t", kSlow, run));
  CHECK(rest.out.find("resuming at step ") != std::string::npos);
  CHECK(differences(state_after(folder, 40), whole()) == "");
}

TEST_CASE("a signal ends a run while the loader's workers are stuck in examples") {
  for (const int signal : {SIGUSR1, SIGTERM}) check_signal_in("stuck_train", signal);
}

TEST_CASE("a signal ends a run in an evaluation whose examples are stuck") {
  for (const int signal : {SIGUSR1, SIGTERM}) check_signal_in("stuck_validation", signal);
}

TEST_CASE("a signal ends a run in a callback that reads its file in many blocks") {
  for (const int signal : {SIGUSR1, SIGTERM}) check_signal_in("stuck_callback", signal);
}

}  // namespace cli_signals_test
}  // namespace stepop
