#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/references.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/value/value.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/exit_codes.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/tools/sweep/sweep_file.h"
#include "runtime/tools/sweep/sweep_jobs.h"
#include "runtime/tools/sweep/sweep_plan.h"
#include "runtime/tools/sweep/sweep_results.h"
#include "runtime/tools/sweep/sweep_table.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

struct SweepFlags {
  std::optional<std::string> jobs;
  std::optional<std::string> gpus;
  std::optional<std::string> launch;
  bool keys = false;
  bool table = false;
  bool json = false;
  bool csv = false;

  void add_to(Flags& flags) {
    flags.add("jobs", jobs, "how many runs at a time (default: the file's, else 1)");
    flags.add("gpus", gpus,
              "numbers of GPUs, 0,1,2,3: each run sees one of them; so many runs at a time");
    flags.add("launch", launch,
              "words before each run's command, such as \"srun --ntasks 1 --exact\"");
    flags.add("keys", keys, "the keys of a sweep file, with type, (default) and meaning");
    flags.add("table", table, "only print the table of what there is; starts nothing");
    flags.add("json", json, "the table and all runs as JSON; progress goes to standard error");
    flags.add("csv", csv, "the table as CSV; progress goes to standard error");
  }
};

namespace fs = std::filesystem;

constexpr const char* kPlanSource = "sweep.yaml, or the folder of a sweep, logs/sweeps/<name>";

/// Ignores write errors: the sweep must not end because the output's reader is gone.
void say_line(std::FILE* out, const std::string& text) {
  std::fputs((text + "\n").c_str(), out);
  std::fflush(out);
}

int64_t read_jobs(const SweepFlags& own, const SweepPlan& plan) {
  if (!own.jobs) return plan.jobs();
  const int64_t jobs = list_index(*own.jobs);
  if (jobs >= 1 && jobs <= kMostSweepJobs) return jobs;
  throw UsageError(
      fmt::format("--jobs {}: expected a number from 1 to {}", *own.jobs, kMostSweepJobs));
}

/// The GPUs of `--gpus`, as CUDA_VISIBLE_DEVICES takes them: numbers or UUIDs.
std::vector<std::string> read_gpus(const SweepFlags& own) {
  std::vector<std::string> gpus;
  if (!own.gpus) return gpus;
  std::istringstream text(*own.gpus + ",");
  for (std::string gpu; std::getline(text, gpu, ',');) {
    if (gpu.empty()) {
      throw UsageError(
          fmt::format("--gpus {}: expected numbers of GPUs, such as 0,1,2,3", *own.gpus));
    }
    gpus.push_back(gpu);
  }
  return gpus;
}

/// The whole config of each point, as the point's run would save it.
std::vector<std::string> resolve_points(const SweepFile& sweep, const std::string& path) {
  std::vector<std::string> configs;
  for (const auto& point : sweep.points) {
    try {
      const Config config(resolve_config(sweep.base, point));
      load_code(config, "", Optimization::kFull);
      make_paths_absolute(config);
      configs.push_back(to_yaml(escape_references(*config.peek())));
    } catch (const UsageError& error) {
      throw UsageError(
          fmt::format("{}: with {}: {}", path, point_text(values_of(point)), error.what()));
    }
    throw_if_signal_arrived();
  }
  return configs;
}

/// The lock of the sweep's folder; removes a new folder that has no plan.
class SweepFolder {
 public:
  explicit SweepFolder(std::string path) : path_(std::move(path)) {
    std::error_code failed;
    is_new_ = !fs::exists(path_, failed);
    make_folders(path_);
    lock_.emplace(
        path_ + "/process.json", time_name(), std::chrono::seconds(10),
        RunLockText{"this sweep is running", "`stepop sweep ... --table` shows how far it is"});
  }
  ~SweepFolder() {
    lock_.reset();
    std::error_code ignored;
    if (is_new_ && !fs::exists(path_ + "/plan.yaml", ignored)) fs::remove_all(path_, ignored);
  }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;

  RunLock& lock() { return *lock_; }

 private:
  std::string path_;
  bool is_new_ = false;
  std::optional<RunLock> lock_;
};

/// The command that starts this sweep again.
std::string command_again(const Arguments& arguments, const SweepFlags& own) {
  std::string text =
      fmt::format("{} sweep {}", program_name(), shell_word(arguments.operands.front()));
  if (arguments.logs != "logs") text += " --logs " + shell_word(arguments.logs);
  if (own.jobs) text += " --jobs " + *own.jobs;
  if (own.gpus) text += " --gpus " + shell_word(*own.gpus);
  if (own.launch) text += " --launch " + shell_word(*own.launch);
  return text;
}

/// Makes the plan, or adds the file's new points to it; checks the new runs.
void make_plan(SweepPlan& plan, const SweepFile& sweep, const std::string& path,
               const SweepOptions& options) {
  const std::vector<size_t> added = plan.extend(sweep, resolve_points(sweep, path));
  if (added.empty()) {
    plan.write();
    return;
  }
  plan.write_configs();
  try {
    SweepFile news = sweep;
    news.points.clear();
    for (const size_t i : added) news.points.push_back(sweep.points[i]);
    std::vector<size_t> places = points_with_all_values(news);
    for (size_t& place : places) place += plan.runs().size() - added.size();
    options.say(fmt::format("{} of {} new runs {} tried, each value once", places.size(),
                            added.size(), places.size() == 1 ? "is" : "are"));
    check_runs(plan, places, options, path);
  } catch (...) {
    plan.remove_configs();
    throw;
  }
  plan.write();
}

/// The plan from a sweep's folder or its file.
struct SweepSource {
  std::optional<SweepFile> file;
  SweepPlan plan;
};

SweepSource read_source(const Arguments& arguments) {
  const std::string& path = arguments.operands.front();
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    const std::string folder = RunDirectory::at(path).root();
    auto plan = SweepPlan::read(folder);
    if (!plan) {
      throw UsageError(
          fmt::format("stepop sweep: {}: no plan.yaml in it; give {}", path, kPlanSource));
    }
    return {std::nullopt, std::move(*plan)};
  }
  if (!fs::exists(path, failed)) {
    throw UsageError(fmt::format("stepop sweep: {}: no such file; give {}", path, kPlanSource));
  }
  SweepFile file = read_sweep_file(path);
  const std::string folder = sweep_folder(arguments.logs, file.name);
  SweepPlan plan = SweepPlan::read(folder).value_or(SweepPlan(folder, file.name));
  return {std::move(file), std::move(plan)};
}

void print_table(const SweepFlags& own, const SweepPlan& plan) {
  const SweepResults results = read_results(plan);
  fmt::print("{}", own.json  ? sweep_table_json(plan, results)
                   : own.csv ? sweep_table_csv(plan, results)
                             : sweep_table_text(plan, results));
}

int run_plan(const Arguments& arguments, const SweepFlags& own, SweepSource& source,
             std::FILE* out) {
  const SignalGuard signals;
  SweepPlan& plan = source.plan;
  SweepFolder folder(plan.folder());
  // Another start may have changed the plan since it was read.
  if (auto now = SweepPlan::read(plan.folder())) plan = std::move(*now);
  SweepOptions options;
  options.jobs = own.jobs || !source.file ? read_jobs(own, plan) : source.file->jobs;
  options.gpus = read_gpus(own);
  if (own.gpus && !own.jobs) options.jobs = static_cast<int64_t>(options.gpus.size());
  options.launcher = own.launch.value_or("");
  options.say = [&](const std::string& text) { say_line(out, text); };
  if (arguments.allow_unknown) options.more_words.emplace_back("--allow-unknown");
  if (arguments.current_code) options.more_words.emplace_back("--current-code");
  if (source.file) make_plan(plan, *source.file, arguments.operands.front(), options);
  folder.lock().begin();
  say_line(out, fmt::format("sweep {}: {} runs in {}, {} at a time", plan.name(),
                            plan.runs().size(), plan.folder(), options.jobs));
  const SweepOutcome outcome = run_sweep(plan, options);
  folder.lock().end(outcome.signal != 0 ? "stopped" : outcome.failed > 0 ? "failed" : "done");
  if (outcome.signal != 0) {
    say_line(out, "resume with:  " + command_again(arguments, own));
    return 128 + outcome.signal;
  }
  if (!own.json && !own.csv) say_line(out, "");
  print_table(own, plan);
  if (outcome.failed > 0) {
    say_line(stderr,
             fmt::format("stepop: {} of {} runs failed; the same command tries them again: "
                         " {}",
                         outcome.failed, plan.runs().size(), command_again(arguments, own)));
    return 1;
  }
  return outcome.has_failed_callback ? kCallbackFailed : 0;
}

int sweep_command(const Arguments& arguments, const SweepFlags& own) {
  if (own.keys) {
    fmt::print("{}", sweep_keys_text());
    return 0;
  }
  if (arguments.operands.empty()) {
    throw UsageError(fmt::format("stepop sweep: nothing given; give {}", kPlanSource));
  }
  if (own.json && own.csv) throw UsageError("stepop sweep: --json and --csv: give one");
  SweepSource source = read_source(arguments);
  if (!own.table) {
    return run_plan(arguments, own, source, own.json || own.csv ? stderr : stdout);
  }
  if (source.plan.runs().empty()) {
    throw UsageError(fmt::format("stepop sweep: {}: it has not begun: there is no {}",
                                 arguments.operands.front(), source.plan.folder()));
  }
  print_table(own, source.plan);
  return 0;
}

STEPOP_REGISTER_COMMAND(
    sweep_command, SweepFlags,
    {.name = "sweep",
     .group = CommandGroup::kManyRuns,
     .operands = "sweep.yaml [--jobs N] [--gpus 0,1] [--launch WORDS] [--table] [--json | --csv] "
                 "| --keys",
     .fewest = 0,
     .most = 1,
     .about = "train with many values of a config, resume that after a stop, and show the best",
     .takes = "project logs current-code allow-unknown",
     .example =
         "stepop sweep sweep.yaml --jobs 2\nstepop sweep sweep.yaml --table --csv > table.csv",
     .meanings = "project: the folder of a sweep; the word alone does\n"
                 "logs: the sweep is in the folder sweeps/ of this one (default: logs)"
                 "\ncurrent-code: runs that are resumed take the sources as they are now"});

}  // namespace

}  // namespace stepop
