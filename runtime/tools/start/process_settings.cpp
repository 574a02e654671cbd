#include "runtime/tools/start/process_settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"
#include "runtime/tools/start/kept_settings.h"
#include "runtime/tools/start/processes.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/tools/start/run_starts.h"
#include "runtime/train/distributed/place.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/thread_wait.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

struct ReadStart {
  RunSource source;
  Config config;
};

/// Reads the config of a start, once. Nothing for a bad config, and for a file that can be read
/// only once, such as a pipe, since the program may restart itself.
std::optional<ReadStart> read_start(const Arguments& arguments) {
  try {
    RunSource source = find_source(arguments);
    std::error_code failed;
    const auto is_file = [&](const std::string& path) {
      return std::filesystem::is_regular_file(path, failed);
    };
    if (source.base.empty() || !std::ranges::all_of(source.base, is_file)) return std::nullopt;
    Config config(source.resolve(arguments.overrides).root);
    return ReadStart{std::move(source), std::move(config)};
  } catch (const Error&) {  // the code that needs the config reports the error
    return std::nullopt;
  }
}

/// Adds the settings that the command line does not set.
void lay_under(Arguments& arguments, const OrderedMap<Value>& settings) {
  for (const auto& [key, value] : settings) {
    const bool is_given = std::ranges::any_of(
        arguments.overrides, [&](const Override& given) { return given.path == key; });
    const bool is_flag = key == "processes" && arguments.processes;
    if (!is_given && !is_flag) arguments.overrides.push_back({key, value});
  }
}

/// Adds the settings that `stepop tune` found, if any.
Arguments with_tuned(const Arguments& arguments, const std::optional<ReadStart>& read) {
  if (*arguments.tuned != "auto") {
    throw UsageError(
        fmt::format("--tuned {}: expected auto; a file is given with -b", *arguments.tuned));
  }
  if (!arguments.train) throw UsageError("--tuned auto is for trainings: it needs -t");
  if (continues_run(arguments)) {
    throw UsageError(
        "--tuned auto: a run that is resumed keeps the settings that it began with, on which its "
        "bits depend: leave it out");
  }
  const bool is_started_by_us = environment_variable("STEPOP_PROCESSES").has_value();
  if (read_place().size > 1 && !is_started_by_us) {
    throw UsageError(
        "--tuned auto is for one machine, and here a launcher starts the processes: give the file "
        "that stepop tune wrote with -b");
  }
  if (!read) return arguments;
  const std::string file = kept_settings_file(*read->config.peek());
  const auto settings = read_tuned(file);
  Arguments result = arguments;
  if (settings) lay_under(result, *settings);
  if (!is_started_by_us && settings) {
    fmt::print("tuned: settings of {}\n", file);
  } else if (!is_started_by_us) {
    fmt::print(
        "tuned: no settings are known for this config, batch size, machine and build; `stepop "
        "tune` with the same -b finds them\n");
  }
  return result;
}

/// Restarts the program, since OpenMP reads its variables when it is loaded.
[[noreturn]] void start_again(const std::string& wait) {
  std::vector<std::string> words = own_words();
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  set_variables(variables_of_thread_wait(wait));
  std::fflush(nullptr);
  // The program's own name is the name that tools then show.
  ::execv(std::filesystem::read_symlink("/proc/self/exe").c_str(), pointers.data());
  throw Error(fmt::format("thread_wait: this program cannot restart itself: {}",
                          std::generic_category().message(errno)));
}

/// By default, a resumed run keeps the number of processes that `--processes` gave it.
std::optional<std::string> processes_of_resumed(const Arguments& arguments,
                                                const RunSource& source) {
  if (arguments.processes || read_place().size > 1 || !continues_run(arguments)) {
    return arguments.processes;
  }
  const auto record = record_beside(source.project->last_config());
  if (!record || record->launcher != "--processes") return std::nullopt;
  return std::to_string(record->processes);
}

}  // namespace

ProcessSettings with_process_settings(const Arguments& given) {
  if (!given.train && !given.tuned) return {given};
  std::optional<ReadStart> read = read_start(given);
  Arguments arguments = given.tuned ? with_tuned(given, read) : given;
  if (!read) return {std::move(arguments)};
  if (given.tuned) {
    read->config = Config(read->source.resolve(arguments.overrides).root);
  }
  const Config& config = read->config;
  const std::string wait = read_thread_wait(config);
  if (!wait.empty() && wait != own_thread_wait()) start_again(wait);
  const double timeout = config.has("distributed/timeout")
                             ? read_seconds(config, "distributed/timeout")
                             : ProcessSettings{}.timeout;
  if (!config.has("processes")) {
    arguments.processes = processes_of_resumed(arguments, read->source);
    return {std::move(arguments), std::move(read->source), timeout};
  }
  const int64_t wanted = config.get_between("processes", 1, kMostProcesses, 1);
  const int launched = read_place().size;
  if (launched == 1 && !arguments.processes && wanted > 1) {
    arguments.processes = std::to_string(wanted);
  }
  const int64_t real = launched > 1 ? launched : list_index(arguments.processes.value_or("1"));
  if (real >= 1 && real != wanted) arguments.overrides.push_back({"processes", Value(real)});
  return {std::move(arguments), std::move(read->source), timeout};
}

}  // namespace stepop
