#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
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
  Mirror(const Config& params, const Context& context)
      : context_(context),
        command_(params.get<std::string>("command")),
        tries_(params.get_at_least("tries", 1, 5)),
        pause_(params.get_at_least("pause", 0, 10)),
        end_timeout_(params.get_at_least("end_timeout", 0, 600)) {
    if (command_.find("{file}") == std::string::npos &&
        command_.find("{folder}") == std::string::npos) {
      throw params.error("command",
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
      if (!changed_.wait_for(lock, std::chrono::seconds(end_timeout_), is_idle)) {
        warnings_.push_back(
            fmt::format("the last copy was not done after end_timeout: {} seconds", end_timeout_));
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
        with(with(with(command_, "{file}", path), "{folder}", context_.run.folder), "{run}",
             std::filesystem::path(context_.run.folder).filename());
    std::string problem;
    for (int64_t i = 0; i < tries_; ++i) {
      if (i > 0 && !pause(std::chrono::seconds(pause_ << std::min<int64_t>(i - 1, 6)))) break;
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
    return problem.empty() ? "" : fmt::format("`{}` failed {} times: {}", command, tries_, problem);
  }

  const Context& context_;
  std::string command_;
  int64_t tries_;
  int64_t pause_;
  int64_t end_timeout_;

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
    {"Copies checkpoints, or the run's folder, elsewhere by a command behind the training.",
     {{"command", "",
       "for sh: {file} is the newest checkpoint, {folder} the run's folder, {run} its name"},
      {"tries", "5", "before a copy is given up, with a warning"},
      {"pause", "10", "seconds before the second try; it doubles with each"},
      {"end_timeout", "600", "seconds that the end of a training waits for the last copy"}}});

}  // namespace
}  // namespace stepop
