#include "runtime/tools/cli/process_settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/resolve.h"
#include "runtime/tools/cli/kept_settings.h"
#include "runtime/tools/cli/processes.h"
#include "runtime/tools/cli/run_source.h"
#include "runtime/tools/cli/run_starts.h"
#include "runtime/train/distributed/place.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {
namespace {

/// Nothing for a bad config, and for a file that can be read only once, such as a pipe.
std::optional<Config> config_of_start(const Arguments& arguments) {
  try {
    const RunSource source = find_source(arguments);
    const auto is_file = [](const std::string& path) {
      return std::filesystem::is_regular_file(path);
    };
    if (source.base.empty() || !std::ranges::all_of(source.base, is_file)) return std::nullopt;
    return Config(resolve_config(source.base, arguments.overrides));
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
Arguments with_tuned(const Arguments& arguments) {
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
  const std::optional<Config> config = config_of_start(arguments);
  if (!config) return arguments;
  const std::string file = kept_settings_file(*config->peek());
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
  for (const auto& [name, value] : variables_of_thread_wait(wait)) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
  std::fflush(nullptr);
  // The program's own name is the name that tools then show.
  ::execv(std::filesystem::read_symlink("/proc/self/exe").c_str(), pointers.data());
  throw Error(fmt::format("thread_wait: this program cannot restart itself: {}",
                          std::generic_category().message(errno)));
}

/// By default, a resumed run keeps the number of processes that `--processes` gave it.
std::optional<std::string> processes_of_resumed(const Arguments& arguments) {
  if (arguments.processes || read_place().size > 1 || !continues_run(arguments)) {
    return arguments.processes;
  }
  const auto record = record_beside(find_source(arguments).project->last_config());
  if (!record || record->launcher != "--processes") return std::nullopt;
  return std::to_string(record->processes);
}

}  // namespace

Arguments with_process_settings(const Arguments& given) {
  const Arguments arguments = given.tuned ? with_tuned(given) : given;
  if (!arguments.train) return arguments;
  const std::optional<Config> config = config_of_start(arguments);
  if (!config) return arguments;
  const std::string wait = read_thread_wait(*config);
  if (!wait.empty() && wait != own_thread_wait()) start_again(wait);
  Arguments result = arguments;
  if (!config->has("processes")) {
    result.processes = processes_of_resumed(arguments);
    return result;
  }
  const int64_t wanted = config->get_between("processes", 1, kMostProcesses, 1);
  const int launched = read_place().size;
  if (launched == 1 && !result.processes && wanted > 1) result.processes = std::to_string(wanted);
  const int64_t real = launched > 1 ? launched : list_index(result.processes.value_or("1"));
  if (real >= 1 && real != wanted) result.overrides.push_back({"processes", Value(real)});
  return result;
}

}  // namespace stepop
