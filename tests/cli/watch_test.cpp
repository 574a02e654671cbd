// `stepop watch`, with the real binary.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/cli/command.h"

namespace stepop {
namespace watch_test {

const std::string kConfig =
    "iterator: Classifier\nmodel: {class: MLP, inputs: 48, hidden: [8]}\n"
    "datasets: {train: {class: Synthetic, size: 64, shape: [3, 4, 4], classes: 2}}\n"
    "batch_size: 8\nnum_epochs: 1\nlog_ops: [train/log_op]\nseed: 1\neval_hook: null\n"
    "optimizer: {class: SGD, lr: 0.1}\n";

/// Runs `steps` beside `stepop watch -b one.yaml`, the program itself and no function of the shell,
/// whose process would get the signal in its place. The output is in the file `out`. In the steps
/// `ends N` waits until the trainings have ended N times.
CommandResult watching(const ScratchFolder& folder, const std::string& steps,
                       const std::string& more = "") {
  folder.write("one.yaml", kConfig);
  return run_in(folder,
                "'" STEPOP_BINARY_DIR "/stepop' watch -b one.yaml " + more +
                    " >out 2>&1 & watch=$!\n"
                    "ends() { for i in $(seq 1200); do\n"
                    "  [ $(grep -c 'waiting for a save' out) -ge $1 ] && return; sleep 0.1; done\n"
                    "  cat out; kill -9 $watch; exit 1; }\n" +
                    steps + "\nkill -TERM $watch; wait $watch; echo status $?; cat out");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a saved config is trained again, and its numbers are compared with those before") {
  const ScratchFolder folder;
  const auto result = watching(folder,
                               "ends 1\nsed -i 's/lr: 0.1/lr: 0.4/' one.yaml\nends 2\n"
                               "cp one.yaml two.tmp && mv two.tmp one.yaml\nends 3\n"
                               "ls logs/debug_runs | wc -l; ls logs");
  CAPTURE(result.out);
  CHECK(result.out.starts_with("2\ndebug_runs\nstatus 143\n"));  // the two newest are kept
  CHECK(contains(result.out, "-n watch -d -t\n"));
  CHECK(contains(result.out, "\nsaved     one.yaml\n"));
  CHECK(contains(result.out, "train/log_op/loss  "));
  CHECK(contains(result.out, ", before "));
  CHECK(contains(result.out, "\nall numbers are as before\n"));
}

TEST_CASE("a mistake in what was saved is told, and the next save is waited for") {
  const ScratchFolder folder;
  const auto result = watching(folder,
                               "ends 1\nsed -i 's/lr:/rl:/' one.yaml\nends 2\n"
                               "touch notes.txt .hidden.yaml\n"
                               "sed -i 's/rl:/lr:/' one.yaml\nends 3\n"
                               "grep -c ^saved out",
                               "--optimizer/momentum 0.5");
  CAPTURE(result.out);
  CHECK(result.out.starts_with("2\nstatus 143\n"));
  CHECK(contains(result.out,
                 "one.yaml:9: unknown key \"optimizer/rl\": did you mean \"optimizer/lr\"?"));
  CHECK(contains(result.out, "all numbers are as before\n"));
}

TEST_CASE("a config in another folder that the one of -b includes is watched") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("parts"));
  folder.write("parts/rate.yaml", "optimizer: {lr: 0.2, momentum: 0.2}\n");
  const auto result = watching(folder,
                               "ends 1\necho 'include: [parts/rate.yaml]' >>one.yaml\nends 2\n"
                               "sed -i 's/0.2/0.3/' parts/rate.yaml\nends 3",
                               "");
  CAPTURE(result.out);
  CHECK(contains(result.out, "\nsaved     rate.yaml\n"));
}

TEST_CASE("a source in another folder is watched, and debug runs of others are left alone") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("parts"));
  folder.write("parts/mine.cpp", "int answer() { return 1; }\n");
  const auto result = watching(
      folder,
      "ends 1\nstepop -n other -b one.yaml -d -t >/dev/null\n"
      "sed -i 's/1/2/' parts/mine.cpp\nends 2\n"
      "sed -i 's/2/3/' parts/mine.cpp\nends 3\nls logs/debug_runs | sed 's/.*_//; s/-[0-9]*$//'",
      "--code parts/mine.cpp");
  CAPTURE(result.out);
  CHECK(result.out.starts_with("other\nwatch\nwatch\nstatus 143\n"));
  CHECK(contains(result.out, "\nsaved     mine.cpp\n"));
}

TEST_CASE("without a config, and with a flag of another mode, watching is refused") {
  const ScratchFolder folder;
  CHECK(run_in(folder, "stepop watch")
            .err.starts_with("stepop: no config given: stepop watch -b base.yaml"));
  CHECK(run_in(folder, "stepop watch -b one.yaml -t").exit_code == 2);
}

}  // namespace watch_test
}  // namespace stepop
