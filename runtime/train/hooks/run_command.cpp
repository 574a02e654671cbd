#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/train/iterator/hook.h"

namespace stepop {
namespace {

std::string with(std::string text, const std::string& placeholder, const std::string& value) {
  const std::string word = shell_word(value);
  for (size_t at = text.find(placeholder); at != std::string::npos;
       at = text.find(placeholder, at + word.size())) {
    text.replace(at, placeholder.size(), word);
  }
  return text;
}

/// The exit status as of a shell, and what a command said.
std::string describe(const ChildResult& result) {
  std::string said = result.err.empty() ? result.out : result.err;
  while (said.ends_with('\n')) said.pop_back();
  return fmt::format("{}: {}", result.signal != 0 ? 128 + result.signal : result.exit_code, said);
}

/// Runs a command for each checkpoint in a thread of its own, such as a copy elsewhere. While one
/// runs, only the newest of later checkpoints waits for it. Of failures in a row the first is
/// shown, then that it works again, or at the end that it does not.
class CheckpointCommand {
 public:
  struct Params {
    std::string command;
    int64_t tries = 5;
    int64_t pause = 10;
    int64_t end_timeout = 600;

    void declare(Parameters& p) {
      p.add("tries", tries, "of a checkpoint's command before it is given up, with a warning",
            at_least(1));
      p.add("pause", pause, "seconds before its second try; it doubles with each", at_least(0));
      p.add("end_timeout", end_timeout,
            "seconds that the end of a training waits for the last checkpoint's command",
            at_least(0));
    }
  };

  CheckpointCommand(Params params, const Context& context)
      : context_(context),
        p_(std::move(params)),
        is_of_file_(p_.command.find("{file}") != std::string::npos) {}

  ~CheckpointCommand() {
    {
      const std::lock_guard lock(mutex_);
      gives_up_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  /// Whether a checkpoint's own file is of no concern to it.
  bool is_of_folder() const { return !is_of_file_; }

  /// `path`: a checkpoint, or the run's folder.
  void take(const std::string& path) {
    {
      const std::lock_guard lock(mutex_);
      newest_ = path;
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.notify_all();
  }

  void wait() {
    {
      std::unique_lock lock(mutex_);
      const auto is_idle = [&] { return newest_.empty() && !is_busy_; };
      if (!is_idle()) {
        context_.log.info("RunCommand: waiting for the command of the last checkpoint");
      }
      if (!changed_.wait_for(lock, std::chrono::seconds(p_.end_timeout), is_idle)) {
        messages_.push_back(
            {fmt::format("the last checkpoint's command was not done after end_timeout: {} seconds",
                         p_.end_timeout) +
             last_success()});
      } else if (failures_ > 1) {
        messages_.push_back({last_failure_});
      }
    }
    say();
  }

  void say() {
    std::vector<Message> messages;
    {
      const std::lock_guard lock(mutex_);
      messages.swap(messages_);
    }
    for (const auto& [text, is_warning] : messages) {
      is_warning ? context_.log.warn("RunCommand: " + text)
                 : context_.log.info("RunCommand: " + text);
    }
  }

 private:
  struct Message {
    std::string text;
    bool is_warning = true;
  };

  enum class Outcome { kWorked, kFailed, kGone, kNotNeeded };

  std::string last_success() const {
    return worked_for_.empty() ? "; it has not worked since the start"
                               : "; it last worked for " + worked_for_;
  }

  /// The thread's loop.
  void work() {
    bool was_gone = false;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return gives_up_ || !newest_.empty(); });
      if (gives_up_) return;
      const std::string path = std::exchange(newest_, "");
      is_busy_ = true;
      lock.unlock();
      std::string problem;
      const Outcome outcome = run(path, problem);
      lock.lock();
      is_busy_ = false;
      if (outcome == Outcome::kWorked) {
        if (failures_ > 0) {
          messages_.push_back(
              {fmt::format("the command works again, after {} failures", failures_), false});
        }
        failures_ = 0;
        worked_for_ = std::filesystem::path(path).filename();
      } else if (outcome == Outcome::kFailed || (outcome == Outcome::kGone && was_gone)) {
        last_failure_ = problem + last_success();
        if (failures_++ == 0) messages_.push_back({last_failure_});
      }
      was_gone = outcome == Outcome::kGone;
      changed_.notify_all();
    }
  }

  /// Waits; false when the training is over.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [&] { return gives_up_; });
  }

  /// For `kFailed` and `kGone` `problem` says what went wrong. `kGone`: the file was removed
  /// meanwhile, since it is not among those that are kept; once that may be why.
  Outcome run(const std::string& path, std::string& problem) {
    // The file is written by another thread.
    while (!std::filesystem::exists(path)) {
      if (!pause(std::chrono::milliseconds(50))) return Outcome::kNotNeeded;
      const std::lock_guard lock(mutex_);
      if (!newest_.empty()) return Outcome::kNotNeeded;
    }
    const std::string& folder = context_.run.folder;
    const std::string command = with(with(with(p_.command, "{file}", path), "{folder}", folder),
                                     "{run}", std::filesystem::path(folder).filename());
    const auto failed = [&](int64_t tries) {
      problem = fmt::format("`{}` failed {} times: {}", command, tries, problem);
    };
    for (int64_t i = 0; i < p_.tries; ++i) {
      if (i > 0 && !pause(std::chrono::seconds(p_.pause << std::min<int64_t>(i - 1, 6)))) break;
      try {
        const ChildResult result = run_child({"sh", "-c", command}, [&] {
          const std::lock_guard lock(mutex_);
          if (gives_up_) throw Interrupted("the training is over");
        });
        if (result.exit_code == 0 && result.signal == 0) return Outcome::kWorked;
        problem = "exit status " + describe(result);
      } catch (const Interrupted&) {
        break;
      } catch (const Error& error) {
        problem = error.what();
      }
      if (is_of_file_ && !std::filesystem::exists(path)) {
        failed(i + 1);
        return Outcome::kGone;
      }
    }
    if (problem.empty()) return Outcome::kNotNeeded;
    failed(p_.tries);
    return Outcome::kFailed;
  }

  const Context& context_;
  Params p_;
  bool is_of_file_;

  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::string newest_;  ///< The checkpoint whose command comes next; empty for none.
  bool is_busy_ = false;
  bool gives_up_ = false;
  int64_t failures_ = 0;      ///< In a row.
  std::string last_failure_;  ///< With the checkpoint before it for which the command worked.
  std::string worked_for_;    ///< A file name; empty before the first success.
  std::vector<Message> messages_;
  std::thread thread_;
};

/// Runs a command when a training ends, fails or has a new checkpoint, or calls a URL.
class RunCommand : public Hook {
 public:
  struct Params {
    std::optional<std::string> command;
    std::optional<std::string> url;
    std::string on = "both";
    int64_t timeout = 30;
    CheckpointCommand::Params of_checkpoint;

    void declare(Parameters& p) {
      p.add("command", command,
            "for sh, with $STEPOP_RUN, $STEPOP_STATE (done, stopped, failed), $STEPOP_STEP, "
            "$STEPOP_ERROR; on a checkpoint {file} is its path, {folder} the run's folder, which "
            "is also copied at the end, {run} its name");
      p.add("url", url, "gets the same as JSON by POST, through curl; not on a checkpoint");
      p.add("timeout", timeout, "seconds, at the end and at a failure", at_least(1));
      p.add("on", on, "end, failure, both, or checkpoint: each new one, behind the training",
            one_of({"end", "failure", "both", "checkpoint"}));
      of_checkpoint.declare(p);
    }
  };

  RunCommand(const Params& params, const Config& config, const Context& context)
      : context_(context),
        command_(params.command.value_or("")),
        url_(params.url.value_or("")),
        timeout_(params.timeout),
        at_end_(params.on == "end" || params.on == "both"),
        at_failure_(params.on == "failure" || params.on == "both") {
    if (params.on == "checkpoint") {
      listen_to_checkpoints(params, config);
    } else if (command_.empty() == url_.empty()) {
      throw config.error("command", "give a command or a url, one of them");
    }
  }

  void after_checkpoint(const std::string& path) override {
    if (checkpoint_command_ && context_.rank == 0) checkpoint_command_->take(path);
  }
  void after_step(int64_t /*step*/) override {
    if (checkpoint_command_) checkpoint_command_->say();
  }
  /// The last checkpoint is on its way; a training does not end before it has arrived. A copy of
  /// the folder is made again: the last evaluation came after the last checkpoint.
  void after_training() override {
    if (checkpoint_command_) {
      if (checkpoint_command_->is_of_folder() && context_.rank == 0 &&
          context_.run.ended != "changed") {
        checkpoint_command_->take(context_.run.folder);
      }
      checkpoint_command_->wait();
    }
    // A training whose config changes continues.
    if (at_end_ && context_.run.ended != "changed") run(context_.run.ended, "");
  }
  void at_exception(const std::exception& error) override {
    if (checkpoint_command_) checkpoint_command_->wait();
    if (at_failure_) run("failed", error.what());
  }

 private:
  void listen_to_checkpoints(const Params& params, const Config& config) {
    if (!url_.empty()) throw config.error("url", "on a checkpoint there is a command alone");
    if (command_.find("{file}") == std::string::npos &&
        command_.find("{folder}") == std::string::npos) {
      throw config.error("command",
                         "expected {file}, the checkpoint, or {folder}, that of the run, in it: "
                         "rclone copy {file} s3:bucket/{run}/");
    }
    CheckpointCommand::Params its = params.of_checkpoint;
    its.command = command_;
    checkpoint_command_ = std::make_unique<CheckpointCommand>(its, context_);
  }

  void run(const std::string& state, const std::string& error) {
    if (context_.rank != 0) return;
    const int64_t step = context_.position.global_step;
    std::vector<std::string> words = {"env", fmt::format("STEPOP_RUN={}", context_.run.folder),
                                      fmt::format("STEPOP_STATE={}", state),
                                      fmt::format("STEPOP_STEP={}", step),
                                      fmt::format("STEPOP_ERROR={}", error)};
    if (url_.empty()) {
      words.insert(words.end(), {"sh", "-c", command_});
    } else {
      const nlohmann::ordered_json json = {{"run", context_.run.name},
                                           {"folder", context_.run.folder},
                                           {"state", state},
                                           {"step", step},
                                           {"error", error}};
      words.insert(words.end(), {"curl", "-fsS", "-H", "Content-Type: application/json", "-d",
                                 write_json(json), url_});
    }
    const std::string what = url_.empty() ? "the command" : "curl";
    const time_t end = ::time(nullptr) + timeout_;
    try {
      const ChildResult result = run_child(words, [&] {
        if (::time(nullptr) > end) throw Interrupted("it took too long");
      });
      if (result.exit_code == 0 && result.signal == 0) return;
      context_.log.warn(fmt::format("RunCommand: {} ended with {}", what, describe(result)));
    } catch (const Interrupted&) {
      context_.log.warn(
          fmt::format("RunCommand: {} took longer than timeout: {} seconds, and was "
                      "ended",
                      what, timeout_));
    } catch (const Error& failure) {
      context_.log.warn(fmt::format("RunCommand: {}", failure.what()));
    }
  }

  const Context& context_;
  std::string command_;
  std::string url_;
  int64_t timeout_;
  bool at_end_;
  bool at_failure_;
  std::unique_ptr<CheckpointCommand> checkpoint_command_;  ///< Null unless `on: checkpoint`.
};

STEPOP_REGISTER_HOOK(RunCommand,
                     {"Runs a command when a training ends, fails or has a new checkpoint, such as "
                      "a copy elsewhere; or calls a URL."});

/// The name of `RunCommand` with `on: checkpoint` in 0.1.0.
class Mirror : public RunCommand {
 public:
  struct Params : RunCommand::Params {
    Params() { on = "checkpoint"; }
  };
  using RunCommand::RunCommand;
};

STEPOP_REGISTER_HOOK(Mirror, {"RunCommand with on: checkpoint.", {}, /*is_alias=*/true});

}  // namespace
}  // namespace stepop
