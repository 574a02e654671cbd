#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/train/iterator/hook.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

std::string with(std::string text, const std::string& placeholder, const std::string& value) {
  const std::string word = shell_word(value);
  for (size_t at = text.find(placeholder); at != std::string::npos;
       at = text.find(placeholder, at + word.size())) {
    text.replace(at, placeholder.size(), word);
  }
  return text;
}

/// Copies each checkpoint, or the whole folder of the run, elsewhere by a command that runs behind
/// the training. While a copy is under way, only the newest of later checkpoints waits for it.
class Mirror : public Hook {
 public:
  struct Params {
    std::string command;
    int64_t tries = 5;
    int64_t pause = 10;
    int64_t end_timeout = 600;

    void declare(Parameters& p) {
      p.require("command", command,
                "for sh: {file} is the newest checkpoint, {folder} the run's folder, {run} its "
                "name");
      p.add("tries", tries, "before a copy is given up, with a warning", at_least(1));
      p.add("pause", pause, "seconds before the second try; it doubles with each", at_least(0));
      p.add("end_timeout", end_timeout,
            "seconds that the end of a training waits for the last copy", at_least(0));
    }
  };

  Mirror(const Params& params, const Config& config, const Context& context)
      : context_(context), p_(params) {
    if (p_.command.find("{file}") == std::string::npos &&
        p_.command.find("{folder}") == std::string::npos) {
      throw config.error("command",
                         "expected {file}, the checkpoint, or {folder}, that of the run, in it: "
                         "rclone copy {file} s3:bucket/{run}/");
    }
  }

  ~Mirror() override {
    {
      const std::lock_guard lock(mutex_);
      gives_up_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void after_checkpoint(const std::string& path) override {
    if (context_.rank != 0) return;
    {
      const std::lock_guard lock(mutex_);
      newest_ = path;
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.notify_all();
  }

  void after_step(int64_t /*step*/) override { say(); }

  /// The last checkpoint is on its way; a training does not end before it has arrived.
  void after_training() override { wait_for_copy(); }
  void at_exception(const std::exception& /*error*/) override { wait_for_copy(); }

 private:
  void wait_for_copy() {
    {
      std::unique_lock lock(mutex_);
      const auto is_idle = [&] { return newest_.empty() && !is_busy_; };
      if (!is_idle()) context_.log.info("Mirror: waiting for the last copy");
      if (!changed_.wait_for(lock, std::chrono::seconds(p_.end_timeout), is_idle)) {
        warnings_.push_back(fmt::format("the last copy was not done after end_timeout: {} seconds",
                                        p_.end_timeout));
      }
    }
    say();
  }

  void say() {
    std::vector<std::string> warnings;
    {
      const std::lock_guard lock(mutex_);
      warnings.swap(warnings_);
    }
    for (const auto& text : warnings) context_.log.warn("Mirror: " + text);
  }

  /// The thread's loop.
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return gives_up_ || !newest_.empty(); });
      if (gives_up_) return;
      const std::string path = std::exchange(newest_, "");
      is_busy_ = true;
      lock.unlock();
      const std::string problem = copy(path);
      lock.lock();
      is_busy_ = false;
      if (!problem.empty()) warnings_.push_back(problem);
      changed_.notify_all();
    }
  }

  /// Waits; false when the training is over.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [&] { return gives_up_; });
  }

  /// Returns what went wrong, or nothing.
  std::string copy(const std::string& path) {
    // The file is written by another thread.
    while (!std::filesystem::exists(path)) {
      if (!pause(std::chrono::milliseconds(50))) return "";
      const std::lock_guard lock(mutex_);
      if (!newest_.empty()) return "";
    }
    const std::string command =
        with(with(with(p_.command, "{file}", path), "{folder}", context_.run.folder), "{run}",
             std::filesystem::path(context_.run.folder).filename());
    std::string problem;
    for (int64_t i = 0; i < p_.tries; ++i) {
      if (i > 0 && !pause(std::chrono::seconds(p_.pause << std::min<int64_t>(i - 1, 6)))) break;
      try {
        const ChildResult result = run_child({"sh", "-c", command}, [&] {
          const std::lock_guard lock(mutex_);
          if (gives_up_) throw Interrupted("the training is over");
        });
        if (result.exit_code == 0 && result.signal == 0) return "";
        problem = fmt::format("exit status {}: {}",
                              result.signal != 0 ? 128 + result.signal : result.exit_code,
                              result.err.empty() ? result.out : result.err);
      } catch (const Interrupted&) {
        break;
      } catch (const Error& error) {
        problem = error.what();
      }
      if (!std::filesystem::exists(path)) return "";  // it is not among those that are kept
    }
    return problem.empty() ? ""
                           : fmt::format("`{}` failed {} times: {}", command, p_.tries, problem);
  }

  const Context& context_;
  Params p_;

  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::string newest_;  ///< The checkpoint to be copied next; empty for none.
  bool is_busy_ = false;
  bool gives_up_ = false;
  std::vector<std::string> warnings_;
  std::thread thread_;
};

STEPOP_REGISTER_HOOK(
    Mirror,
    {"Copies checkpoints, or the run's folder, elsewhere by a command behind the training."});

}  // namespace
}  // namespace stepop
