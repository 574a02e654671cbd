// The command itself trains in this process, and each of its calls that changes a file or a folder
// fails once: the training ends with one message, nothing that it wrote before is harmed, and the
// next start comes to the same end.

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "runtime/core/base/shell_text.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "tests/failing_files.h"
#include "tests/runtime/train/loop/command_training.h"
#include "tests/same_state.h"

namespace stepop {
namespace loop_full_disk_test {

namespace fs = std::filesystem;

constexpr int64_t kSteps = CommandTraining::kSteps;

/// The run that nothing disturbs, with all checkpoints that there ever were.
const CommandTraining& undisturbed() {
  static const auto run = [] {
    auto training = std::make_unique<CommandTraining>("{keep_last: 0}");
    REQUIRE(training->start() == "no error");
    return training;
  }();
  return *run;
}

const std::map<std::string, std::string>& expected_results() {
  static const auto results = undisturbed().results();
  return results;
}

const std::vector<std::string>& expected_metrics() {
  static const auto metrics = undisturbed().metrics();
  return metrics;
}

const State& expected_state(int64_t step) {
  static const auto states = [] {
    std::map<int64_t, State> found;
    for (const int64_t each : CheckpointFolder(undisturbed().checkpoints()).steps()) {
      found[each] =
          load_checkpoint(undisturbed().checkpoints() + "/" + checkpoint_name(each)).tensors;
    }
    return found;
  }();
  return states.at(step);
}

/// A saved config without the defaults that it shows.
std::string without_comments(const std::string& yaml) {
  std::istringstream lines(yaml);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line[begin] != '#') text += line + "\n";
  }
  return text;
}

/// Whatever there is, is whole, and what the undisturbed run has.
void check_intact(const CommandTraining& run) {
  const CheckpointFolder folder(run.checkpoints());
  for (const int64_t step : folder.steps()) {
    CAPTURE(step);
    CHECK(differences(load_checkpoint(folder.path_of(step)).tensors, expected_state(step)) == "");
  }
  for (const auto& entry : fs::directory_iterator(run.root() + "/configs")) {
    const std::string text = read_bytes(entry.path().string());
    if (entry.path().extension() == ".yaml") CHECK(without_comments(text) == run.config());
    if (entry.path().extension() == ".json") CHECK(nlohmann::json::accept(text));
  }
  const auto metrics = run.metrics();
  CHECK(metrics.size() <= expected_metrics().size());
  for (size_t i = 0; i < std::min(metrics.size(), expected_metrics().size()); ++i) {
    CHECK(metrics[i] == expected_metrics()[i]);
  }
  for (const auto& [name, bytes] : run.results()) {
    CAPTURE(name);
    REQUIRE(expected_results().contains(name));
    const bool is_same = bytes == expected_results().at(name);
    CHECK(is_same);
  }
}

/// What a run that came to its end has.
void check_whole(const CommandTraining& run, const std::vector<int64_t>& steps) {
  const CheckpointFolder folder(run.checkpoints());
  CHECK(folder.steps() == steps);
  CHECK(folder.latest() == kSteps);
  CHECK(run.metrics() == expected_metrics());
  CHECK(run.results().size() == expected_results().size());
  CHECK(run.leftovers().empty());
  check_intact(run);
}

const char* name_of(FileCall kind) {
  constexpr const char* kNames[] = {"open",   "write",  "fsync",   "truncate", "allocate", "close",
                                    "rename", "unlink", "symlink", "mkdir",    "any"};
  return kNames[static_cast<int>(kind)];
}

struct Failure {
  FileCall kind;
  int reason;
  std::string text;
};

/// A training of this size makes 350 calls, of which most do again what others did: up to this one
/// each fails, then every fifth; of one kind every third. `make torture` takes each.
constexpr int kEachUpTo = 60;

int call_after(int number, FileCall kind) {
  if (std::getenv("STEPOP_TORTURE") != nullptr) return number + 1;
  if (kind != FileCall::kAny) return number + 3;
  return number + (number < kEachUpTo ? 1 : 5);
}

/// Whether `text` is what follows the reason once a training has its folder.
bool tells_what_next(const std::string& text, const CommandTraining& run) {
  const std::string name = std::filesystem::path(run.root()).filename().string();
  const char* how = checkpoint_steps(run.checkpoints()).empty()
                        ? "\nnothing was saved yet; once the cause is fixed, start again with:  "
                        : "\nwhat was saved is whole; once the cause is fixed, resume with:  ";
  for (const std::string& folder : {"logs/" + name, run.root()}) {  // of a new run, of an old one
    if (text == how + resume_command(folder)) return true;
  }
  return false;
}

/// A file that was flushed before it was closed is whole. process.json only says how a training
/// ended, at its end; what cannot be kept of the record of a start is a warning.
bool may_fail_without_harm(FileCall kind, const std::string& path) {
  const bool is_record =
      path.find("/configs") != std::string::npos && path.find(".yaml") == std::string::npos;
  return kind == FileCall::kClose || is_record || path.find("process.json") != std::string::npos;
}

/// Lets one call of a start fail after another, and resumes without failures each time.
/// `checkpoint` is that start's -c; `steps` are the checkpoints that there are at last.
void fail_each_call(const CommandTraining& beginning, const std::optional<std::string>& checkpoint,
                    const Failure& failure, const std::vector<int64_t>& steps) {
  std::map<std::string, int> harmless;
  int tried = 0;
  for (int number = 1;; number = call_after(number, failure.kind)) {
    CommandTraining run(beginning);
    std::string message;
    std::optional<FileCall> failed;
    std::string path;
    {
      FailingFiles files;
      files.fail(failure.kind, number, failure.reason);
      message = run.start(checkpoint);
      failed = files.failed_kind();
      path = files.failed_path();
    }
    if (!failed) break;  // it makes fewer calls
    ++tried;
    const std::string call = name_of(*failed);
    CAPTURE(number);
    CAPTURE(call);
    CAPTURE(path);
    CAPTURE(message);
    if (message == "no error") {
      ++harmless[call];
      CHECK(may_fail_without_harm(*failed, path));
    } else {
      CHECK(message.find("cannot ") != std::string::npos);
      const bool names_it = message.find("logs") != std::string::npos ||
                            message.find("the folder .:") != std::string::npos;
      CHECK(names_it);
      const std::string reason = message.substr(0, message.find('\n'));
      CHECK(reason.ends_with(": " + failure.text));
      const std::string next = message.substr(reason.size());
      if (!next.empty()) CHECK(tells_what_next(next, run));
    }
    if (!run.root().empty()) {
      check_intact(run);
      // What -c goes back to makes links of later steps point at nothing, until the loop begins.
      const CheckpointFolder folder(run.checkpoints());
      const bool has_links = folder.latest() && folder.latest() >= folder.steps().back() - 2;
      CHECK((has_links || folder.steps().size() <= 1 || checkpoint));
      // Once there is a log, it tells the error, too.
      CHECK(run.errors_in_log() <= (message == "no error" ? 0 : 1));
    }
    CHECK(run.start() == "no error");
    CHECK(run.exit_code() == 0);
    check_whole(run, steps);
  }
  std::string text;
  for (const auto& [call, count] : harmless) text += call + " " + std::to_string(count) + " ";
  CHECK(tried > 15);
  MESSAGE(failure.text << ": " << tried << " calls failed; without harm: " << text);
}

const Failure kFull = {FileCall::kAny, ENOSPC, "No space left on device"};
const Failure kFlush = {FileCall::kFsync, EIO, "Input/output error"};
const Failure kReadOnly = {FileCall::kOpen, EROFS, "Read-only file system"};

TEST_CASE("whichever call fails, a training ends with one message, and the next start goes on") {
  const CommandTraining run(
      "{keep_last: 2, keep_best: 1, metric: validation/eval_op/loss, mode: min}");
  for (const auto& failure : {kFull, kFlush, kReadOnly}) {
    fail_each_call(run, {}, failure, {kSteps - 2, kSteps});
  }
}

TEST_CASE("whichever call fails while later steps make room, the next start goes on") {
  fail_each_call(undisturbed(), "2", kFull, {2, 4, 6});
}

}  // namespace loop_full_disk_test
}  // namespace stepop
