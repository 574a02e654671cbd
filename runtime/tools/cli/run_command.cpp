// A start, and further starts when the training's config is changed while it runs.
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/system/append_file.h"
#include "runtime/tools/cli/process_settings.h"
#include "runtime/tools/cli/processes.h"
#include "runtime/tools/cli/run_command.h"
#include "runtime/tools/cli/start.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/run/live_change.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

/// The arguments that resume the run in the folder `root`, otherwise as the start `first`.
Arguments continued(const Arguments& first, const std::string& root) {
  Arguments arguments = first;
  arguments.project = root;
  arguments.base.clear();
  arguments.overrides.clear();
  arguments.name.reset();
  arguments.logs = Arguments().logs;  // only for new runs
  arguments.checkpoint.reset();
  arguments.retrain = false;
  arguments.takes_change = false;
  return arguments;
}

/// The same, with the pending change of the run's config.
Arguments changed(const Arguments& first, const std::string& root) {
  Arguments arguments = continued(first, root);
  const RunDirectory directory = RunDirectory::at(root);
  arguments.base = {directory.last_config(), LiveChange(directory).path()};
  arguments.takes_change = true;
  return arguments;
}

int run_starts(const Arguments& first, std::chrono::steady_clock::time_point begin, World& world,
               std::string& run_root) {
  Arguments arguments = first;
  std::string notice;
  for (;;) {
    bool has_begun = false;
    try {
      const StartEnd end = run_start(arguments, begin, notice, world, has_begun, run_root);
      if (end.changed_run.empty()) return end.exit_code;
      arguments = changed(first, end.changed_run);
      notice.clear();
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      if (!arguments.takes_change || has_begun || !world.is_alone()) throw;
      const std::string root = *arguments.project;
      const std::string refused = LiveChange(RunDirectory::at(root)).refuse();
      notice = fmt::format(
          "the changed config is refused, and is now {}; the training continues unchanged: {}",
          refused, error_text(error));
      arguments = continued(first, root);
    }
  }
}

/// Reports the failure of a process without other output; rank 0 reports the first failure of all.
void note_failure(const World& world, const std::string& run_root, const std::string& text) {
  if (run_root.empty()) return;
  try {
    AppendFile(fmt::format("{}/train/rank-{}.log", run_root, world.rank()))
        .append(fmt::format("{} {}: {}\n", time_name(), world.describe(world.rank()), text));
  } catch (const Error& error) {
    fmt::print(stderr, "stepop: rank {}: {}\nstepop: {}\n", world.rank(), shown_text(text),
               shown_text(error.what()));
  }
}

}  // namespace

int run_command(const Arguments& given) {
  const auto begin = std::chrono::steady_clock::now();
  const Arguments arguments = with_process_settings(given);
  if (arguments.processes && !environment_variable("STEPOP_PROCESSES")) {
    return run_processes(arguments);
  }
  const SignalGuard signals;
  const std::unique_ptr<World> world = World::join(read_place(), throw_if_signal_arrived);
  say_met();
  std::string run_root;
  try {
    const int exit_code = run_starts(arguments, begin, *world, run_root);
    world->finish();
    return exit_code;
  } catch (const std::exception& error) {
    if (world->is_alone()) throw;
    const auto* ours = dynamic_cast<const Error*>(&error);
    const int exit_code = ours != nullptr ? ours->exit_code() : 1;
    const std::string text = error_text(error);
    world->report_failure(text, exit_code);
    if (world->is_root()) throw;
    const bool is_of_all = dynamic_cast<const PeerError*>(&error) != nullptr ||
                           dynamic_cast<const NonFinite*>(&error) != nullptr;
    if (!is_of_all) note_failure(*world, run_root, text);
    // Printed once for each machine; on rank 0's machine, rank 1 prints it.
    if (world->is_cut_off() && (world->place().local_rank == 0 || world->rank() == 1)) {
      fmt::print(stderr, "stepop: {}: {}\n", world->describe(world->rank()), shown_text(text));
    }
    return exit_code;
  }
}

}  // namespace stepop
