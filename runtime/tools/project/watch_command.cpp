#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config_files.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/core/programs/child.h"
#include "runtime/core/programs/spawn.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/project/saved_files.h"
#include "runtime/tools/start/processes.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr size_t kKeptRuns = 2;
constexpr size_t kMostRows = 12;

/// The folders of the config's files, of those that they include, and of the sources that `code`
/// names.
std::set<std::string> watched_folders(const Arguments& arguments) {
  std::set<std::string> folders;
  const auto add = [&](const std::string& file) {
    folders.insert(fs::absolute(file).lexically_normal().parent_path().string());
  };
  for (const auto& file : arguments.base) add(file);
  try {
    std::vector<std::string> read;
    for (const auto& file : arguments.base) read_config_file(file, &read);
    for (const auto& file : read) add(file);
    const Config config(resolve_config(arguments.base, arguments.overrides));
    const Value* code = config.has("code") ? config.peek("code") : nullptr;
    if (code != nullptr && code->is_list()) {
      for (size_t i = 0; i < code->as_list().size(); ++i) {
        add(config.get_path(fmt::format("code/{}", i)));
      }
    } else if (code != nullptr) {
      add(config.get_path("code"));
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the training says what is wrong
  }
  return folders;
}

/// The newest run in `parent` that this process of this boot has trained; empty without one. Others
/// may train there as well.
std::string run_of(pid_t pid, const std::string& parent) {
  const RunProcess self = RunProcess::self("");
  std::string newest;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(parent, failed)) {
    const std::string root = entry.path().string();
    const auto text = try_read_file(root + "/train/process.json");
    const RunProcess process = RunProcess::from_json(text.value_or(""));
    const bool is_own =
        process.pid == pid && process.host == self.host && process.boot == self.boot;
    if (is_own && root > newest) newest = root;
  }
  return newest;
}

/// The last value of each metric that an op returned.
OrderedMap<double> last_values(const RunDirectory& run) {
  OrderedMap<double> last;
  try {
    scan_metrics(run.metrics_file(), [&](const MetricsLine& line) {
      for (const auto& [name, value] : line.values) {
        if (name.find("_op/") != std::string::npos) last.set(name, value);
      }
    });
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a run that ended before its first log
  }
  return last;
}

/// The newest picture below the run's folder; empty without one.
std::string newest_picture(const RunDirectory& run) {
  std::string newest;
  fs::file_time_type time{};
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(run.root(), failed)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".png" && extension != ".jpg" && extension != ".gif") continue;
    const auto written = entry.last_write_time(failed);
    if (failed || (!newest.empty() && written <= time)) continue;
    newest = entry.path().string();
    time = written;
  }
  return newest;
}

/// The debug runs of one `stepop watch`, of which the two newest are kept.
class WatchedRuns {
 public:
  explicit WatchedRuns(std::string parent) : parent_(std::move(parent)) {}

  /// Says what is different from the run before, after the training in that process came to its
  /// end.
  void report(pid_t pid) {
    const std::string root = run_of(pid, parent_);
    if (root.empty()) return;
    roots_.push_back(root);
    const RunDirectory run = RunDirectory::open(root);
    const OrderedMap<double> now = last_values(run);
    size_t rows = 0;
    for (const auto& [name, value] : now) {
      const double* before = before_ ? before_->find(name) : nullptr;
      if (before == nullptr || *before == value || ++rows > kMostRows) continue;
      fmt::print("{}  {}, before {}\n", name, short_number(value), short_number(*before));
    }
    if (before_ && rows == 0) fmt::print("all numbers are as before\n");
    const std::string picture = newest_picture(run);
    if (!picture.empty()) fmt::print("picture   {}\n", picture);
    before_ = now;
    while (roots_.size() > kKeptRuns) {
      std::error_code ignored;
      fs::remove_all(roots_.front(), ignored);
      roots_.pop_front();
    }
  }

 private:
  std::string parent_;
  std::deque<std::string> roots_;
  std::optional<OrderedMap<double>> before_;
};

std::vector<std::string> words_of_training(const Arguments& arguments) {
  std::vector<std::string> words = own_words();
  words.erase(words.begin() + 1);  // `watch`
  if (!arguments.name) words.insert(words.end(), {"-n", "watch"});
  words.insert(words.end(), {"-d", "-t"});
  return words;
}

int watch_command(const Arguments& arguments, const NoFlags& /*own*/) {
  if (arguments.base.empty()) {
    throw UsageError("no config given: stepop watch -b base.yaml" + keys_taken(arguments));
  }
  const SignalGuard signals;
  const std::vector<std::string> words = words_of_training(arguments);
  WatchedRuns runs(arguments.logs + "/debug_runs");
  std::set<std::string> saved;
  while (SignalGuard::received() == 0) {
    SavedFiles files(watched_folders(arguments));  // first, for files that are saved meanwhile
    if (!saved.empty()) fmt::print("\nsaved     {}\n", fmt::join(saved, ", "));
    std::fflush(stdout);
    Child training(spawn({.words = words, .is_this_program = true, .signal_when_we_die = SIGTERM}),
                   Child::Ends::kGroupPolitely);
    bool is_reported = false;
    saved.clear();
    while (saved.empty() && SignalGuard::received() == 0) {
      std::this_thread::sleep_for(50ms);
      if (!is_reported && training.has_ended()) {
        is_reported = true;
        if (training.status() == 0) runs.report(training.pid());
        fmt::print("waiting for a save in {}; Ctrl-C ends\n", fmt::join(files.folders(), ", "));
        std::fflush(stdout);
      }
      saved = files.saved();
    }
  }
  return SignalGuard::received() == SIGINT ? 0 : 128 + SignalGuard::received();
}

STEPOP_REGISTER_COMMAND(
    watch_command, NoFlags,
    {.name = "watch",
     .group = CommandGroup::kBegin,
     .operands = "",
     .fewest = 0,
     .most = 0,
     .about = "train for 10 steps after each save of a config or a source, and "
              "say which numbers changed",
     .takes = "base name logs allow-unknown",
     .example = "stepop watch -b denoiser.yaml",
     .meanings = "name: the end of the names of the folders of its runs (default: watch)"});

}  // namespace

}  // namespace stepop
