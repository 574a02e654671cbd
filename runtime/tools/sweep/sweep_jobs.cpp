#include "runtime/tools/sweep/sweep_jobs.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/tools/cli/exit_codes.h"
#include "runtime/tools/start/ranked_by.h"
#include "runtime/tools/sweep/sweep_results.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kLookMilliseconds = 50;
constexpr std::chrono::seconds kLookAtOthers{1};

/// Divides the machine among the processes: each gets its share of the default threads, unless the
/// config has a number. The shares are passed with --path/key, so that a resumed run has the same
/// threads and thus the same bits.
std::vector<std::string> share_of_machine(const std::string& config_file, int64_t jobs) {
  if (jobs == 1) return {};
  const Value config = read_yaml_file(config_file);
  const auto is_given = [&](const char* key) {
    const Value* value = config.find(key);
    return value != nullptr && !value->is_null();
  };
  std::vector<std::string> words;
  const auto add = [&](const char* key, int64_t whole) {
    if (!is_given(key))
      words.push_back(fmt::format("--{}={}", key, std::max<int64_t>(whole / jobs, 1)));
  };
  const int64_t cores = usable_processors();
  add("num_threads", std::min<int64_t>(at::get_num_threads(), cores));
  add("n_data_processes", std::clamp<int64_t>(cores / 2, 1, 8));
  return words;
}

int64_t size_of(const std::string& path) {
  std::error_code failed;
  const uintmax_t size = fs::file_size(path, failed);
  return failed ? 0 : static_cast<int64_t>(size);
}

/// The text of a file after its first `position` bytes.
std::string text_after(const std::string& path, int64_t position) {
  const std::string text = try_read_file(path).value_or("");
  return static_cast<size_t>(position) < text.size() ? text.substr(static_cast<size_t>(position))
                                                     : "";
}

/// The process of a run.
struct Job {
  PlannedRun run;
  std::string gpu = {};  ///< Empty for all.
  std::unique_ptr<Child> child = nullptr;
  int64_t output_before = 0;  ///< The bytes of output from earlier processes.
  Clock::time_point begin = Clock::now();
};

RunEnd end_of(const SweepPlan& plan, const Job& job) {
  RunEnd end{.number = job.run.number};
  const int status = job.child->status();
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (end.signal == 0 && end.exit_code == 0) return end;
  end.error = error_in_output(text_after(plan.output_file(job.run), job.output_before));
  return end;
}

/// The running processes. If an exception ends the sweep, they save before they end.
class Jobs {
 public:
  explicit Jobs(const SweepOptions& options) : options_(options) {}
  ~Jobs() {
    ask_to_end(SIGTERM);
    while (!jobs_.empty()) take_ended([](const Job&) {});
  }
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  bool empty() const { return jobs_.empty(); }
  size_t size() const { return jobs_.size(); }
  bool has_room() const { return jobs_.size() < static_cast<size_t>(options_.jobs); }

  void start(const SweepPlan& plan, const PlannedRun& run, std::vector<std::string> words,
             std::vector<std::string> environment = {}) {
    const std::string output = plan.output_file(run);
    make_folders(fs::path(output).parent_path().string());
    words.insert(words.begin(), program_name());
    Job job{.run = run, .gpu = idle_gpu(), .output_before = size_of(output)};
    if (!job.gpu.empty()) environment.push_back("CUDA_VISIBLE_DEVICES=" + job.gpu);
    job.child = start_self(std::move(words), output, std::move(environment), options_.launcher);
    jobs_.push_back(std::move(job));
  }

  /// Waits a moment, and calls `handle` for each ended job.
  template <class Handle>
  void take_ended(const Handle& handle) {
    ::poll(nullptr, 0, kLookMilliseconds);
    for (size_t i = 0; i < jobs_.size();) {
      if (!jobs_[i].child->has_ended()) {
        ++i;
        continue;
      }
      const Job job = std::move(jobs_[i]);
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
      handle(job);
    }
  }

  void ask_to_end(int signal) {
    for (const auto& job : jobs_) {
      if (!job.child->has_ended()) ::kill(job.child->pid(), signal);
    }
  }

 private:
  /// The GPU with the fewest runs; empty when runs see all GPUs.
  std::string idle_gpu() const {
    const auto runs_on = [&](const std::string& gpu) {
      return std::ranges::count(jobs_, gpu, &Job::gpu);
    };
    const auto idle = std::ranges::min_element(options_.gpus, {}, runs_on);
    return idle == options_.gpus.end() ? "" : *idle;
  }

  const SweepOptions& options_;
  std::vector<Job> jobs_;
};

class Sweep {
 public:
  Sweep(const SweepPlan& plan, const SweepOptions& options)
      : plan_(plan), options_(options), jobs_(options) {}

  SweepOutcome run() {
    const std::vector<std::string> folders = plan_.run_folders();
    for (size_t i = 0; i < folders.size(); ++i) {
      if (state_of(folders[i]).state == RunState::kEnded) {
        ++ended_;
      } else {
        waiting_.push_back(plan_.runs()[i]);
      }
    }
    if (ended_ > 0)
      say(fmt::format("{} of {} runs have ended before", ended_, plan_.runs().size()));
    while (!jobs_.empty() || (outcome_.signal == 0 && !waiting_.empty())) {
      look_at_signal();
      if (outcome_.signal == 0) start_more();
      jobs_.take_ended([&](const Job& job) { finish(job); });
    }
    return outcome_;
  }

 private:
  static RunStatus state_of(const std::string& folder) {
    return folder.empty() ? RunStatus() : read_run_status(RunDirectory::at(folder).process_file());
  }

  void say(const std::string& text) const { options_.say(text); }

  void look_at_signal() {
    const int signal = SignalGuard::received();
    if (signal == 0 || outcome_.signal != 0) return;
    outcome_.signal = signal;
    const char* what = jobs_.size() == 1 ? "run saves and ends" : "runs save and end";
    say(fmt::format("{} arrived: {} {}", signal_name(signal), jobs_.size(), what));
    jobs_.ask_to_end(signal);
  }

  void start_more() {
    if (!jobs_.has_room() || waiting_.empty() || Clock::now() < next_look_) return;
    // Runs that another process still trains go to the end of the queue.
    for (size_t left = waiting_.size(); left > 0 && jobs_.has_room(); --left) {
      const PlannedRun run = std::move(waiting_.front());
      waiting_.pop_front();
      const std::string folder = plan_.run_folder(run);
      const RunStatus status = state_of(folder);
      if (status.state == RunState::kEnded) {
        ++ended_;
      } else if (status.state == RunState::kRunning) {
        wait_for_other(run, status);
      } else {
        start(run, folder);
      }
    }
  }

  void wait_for_other(const PlannedRun& run, const RunStatus& status) {
    if (waited_for_.insert(run.number).second) {
      say(fmt::format("{} is {}: waiting for its end", number_name(run.number), status.text()));
    }
    waiting_.push_back(run);
    next_look_ = Clock::now() + kLookAtOthers;
  }

  void start(const PlannedRun& run, const std::string& folder) {
    std::vector<std::string> words;
    if (folder.empty()) {
      words = {"-n",     plan_.run_name(run), "-b", plan_.config_file(run), "-t",
               "--logs", plan_.folder()};
      if (options_.launcher.empty()) {  // a launcher gives its own share of some machine
        const auto share = share_of_machine(plan_.config_file(run), options_.jobs);
        words.insert(words.end(), share.begin(), share.end());
      }
    } else {
      words = {"-p", folder, "-t"};
    }
    words.insert(words.end(), options_.more_words.begin(), options_.more_words.end());
    jobs_.start(plan_, run, std::move(words));
    say(fmt::format("{} {:<8} {}", number_name(run.number), folder.empty() ? "starts" : "resumes",
                    point_text(run.values)));
  }

  void finish(const Job& job) {
    RunEnd end = end_of(plan_, job);
    const RunState state = state_of(plan_.run_folder(job.run)).state;
    const bool has_ended = state == RunState::kEnded;
    const bool was_stopped = !has_ended && has_stopped(end, state);
    if (was_stopped) end.error.clear();
    if (!has_ended && !was_stopped && end.error.empty()) {
      end.error = end.signal != 0 ? signal_name(end.signal) + " ended it"
                                  : fmt::format("it ended with status {}", end.exit_code);
    }
    record_end(plan_, end);
    const bool has_failed = !has_ended && !was_stopped;
    count(end, has_ended, has_failed);
    const std::string number = number_name(job.run.number);
    if (has_failed) {
      say(fmt::format("{} failed   {}; all of its output: {}", number, end.error,
                      plan_.output_file(job.run)));
    } else if (was_stopped) {
      say(number + " stopped  and saved");
    } else {
      const double seconds = std::chrono::duration<double>(Clock::now() - job.begin).count();
      say(fmt::format("{} ended    {}{}, {} of {}", number, numbers_text(job.run),
                      span_text(seconds), ended_, plan_.runs().size()));
    }
  }

  void count(const RunEnd& end, bool has_ended, bool has_failed) {
    if (has_ended) ++ended_;
    if (has_ended && end.exit_code != 0) outcome_.has_failed_callback = true;
    if (has_failed && outcome_.signal == 0) ++outcome_.failed;
  }

  /// Whether a run ended for a signal to all runs, even before it had begun, or saved for its own
  /// signal or `max_time`. A run that failed before it began keeps the earlier start's state.
  bool has_stopped(const RunEnd& end, RunState state) const {
    const int signal = outcome_.signal;
    if (signal != 0 && (end.signal == signal || end.exit_code == 128 + signal)) return true;
    return state == RunState::kStopped && end.signal == 0 &&
           (end.exit_code == 0 || end.exit_code > 128);
  }

  /// `best 0.98, last 0.97, `; empty when the numbers are unknown.
  std::string numbers_text(const PlannedRun& run) {
    try {
      if (!metric_) metric_ = choose_sweep_metric(plan_);
    } catch (const UsageError& error) {
      metric_.emplace();
      say(
          fmt::format("warning: {}: correct it in the sweep file, and start the sweep again: that "
                      "changes no run",
                      error.what()));
    }
    const SweepResult result = read_result(plan_, run, *metric_);
    std::string text;
    if (result.best) text += fmt::format("best {}, ", short_number(*result.best));
    if (result.last) text += fmt::format("last {}, ", short_number(*result.last));
    return text;
  }

  const SweepPlan& plan_;
  const SweepOptions& options_;
  std::deque<PlannedRun> waiting_;
  std::set<int64_t> waited_for_;
  Clock::time_point next_look_;
  size_t ended_ = 0;
  std::optional<SweepMetric> metric_;
  SweepOutcome outcome_;
  Jobs jobs_;
};

}  // namespace

SweepOutcome run_sweep(const SweepPlan& plan, const SweepOptions& options) {
  return Sweep(plan, options).run();
}

namespace {

/// A message about a run's config, without places in plan/: the user has not written these files.
std::string without_places(std::string text, const std::string& config_file) {
  const std::string begin = config_file + ":";
  for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    const size_t end = text.find(": ", at + begin.size());
    if (end == std::string::npos) break;
    text.erase(at, end + 2 - at);
  }
  return text;
}

}  // namespace

void check_runs(const SweepPlan& plan, const std::vector<size_t>& places,
                const SweepOptions& options, const std::string& where) {
  Jobs jobs(options);
  std::string error;
  const auto finish = [&](const Job& job) {
    const RunEnd end = end_of(plan, job);
    const bool is_sound = end.exit_code == 0 || end.exit_code == kDoesNotRepeat;
    if ((end.signal == 0 && is_sound) || !error.empty()) return;
    const std::string output = text_after(plan.output_file(job.run), job.output_before);
    // The message may have several lines: each unknown key has its own line.
    const size_t at = output.find("stepop: ");
    error = at != std::string::npos ? output.substr(at + 8)
            : end.signal != 0       ? signal_name(end.signal) + " ended the check"
                                    : output;
    while (error.ends_with('\n')) error.pop_back();
    error = fmt::format("{}: with {}: {}", where, point_text(job.run.values),
                        without_places(error, plan.config_file(job.run)));
  };
  size_t next = 0;
  while (!jobs.empty() || (error.empty() && next < places.size())) {
    throw_if_signal_arrived();
    while (error.empty() && next < places.size() && jobs.has_room()) {
      const PlannedRun& run = plan.runs()[places[next++]];
      std::vector<std::string> words = {"-b", plan.config_file(run), "-t", "--check"};
      const auto share = share_of_machine(plan.config_file(run), options.jobs);
      words.insert(words.end(), share.begin(), share.end());
      words.insert(words.end(), options.more_words.begin(), options.more_words.end());
      std::vector<std::string> environment;
      if (!plan.metric().empty()) {
        environment.push_back(fmt::format("{}={}", kRankedBy, plan.metric()));
      }
      jobs.start(plan, run, std::move(words), std::move(environment));
    }
    jobs.take_ended(finish);
  }
  if (!error.empty()) throw UsageError(error);
}

}  // namespace stepop
