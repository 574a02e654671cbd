// A start, and further starts when the training's config is changed while it runs.
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/log/facts.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/core/system/append_file.h"
#include "runtime/tools/code/crash_message.h"
#include "runtime/tools/start/build_start.h"
#include "runtime/tools/start/open_start.h"
#include "runtime/tools/start/process_settings.h"
#include "runtime/tools/start/processes.h"
#include "runtime/tools/start/run_command.h"
#include "runtime/tools/start/start.h"
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

/// The starts of one process, one after the other.
class Starts {
 public:
  Starts(const Arguments& first, std::optional<RunSource> source,
         std::chrono::steady_clock::time_point begin, World& world)
      : first_(first), source_(std::move(source)), begin_(begin), world_(world) {}

  /// Returns the exit status.
  int run() {
    Arguments arguments = first_;
    std::string notice;
    for (;;) {
      const CrashMessage crash_at_start;
      Console console(world_.is_root() ? arguments.log_level : LogLevel::kCritical);
      std::optional<Start> start;
      try {
        std::optional<TensorMemory> memory;
        if (arguments.check) memory.emplace();
        OpenedStart opened = open_start(arguments, std::exchange(source_, {}), world_, console);
        // A dataset may wait for what never comes.
        std::optional<InterruptScope> interrupt(throw_if_signal_arrived);
        BuiltStart built = build_start(arguments, opened, world_, console);
        if (arguments.check) return check_start(arguments, opened, built, *memory, console);
        interrupt.reset();
        start.emplace(Start{arguments, world_, console, std::move(opened), std::move(built)});
        directory_ = begin_start(*start);
      } catch (const Interrupted&) {
        throw;
      } catch (const std::exception& error) {
        if (!arguments.takes_change || !world_.is_alone()) throw;
        const std::string reason = error_text(error);
        notice = fmt::format(
            "the changed config is refused, and is now {}; the training continues unchanged: {}",
            LiveChange::refuse(arguments.base.back(), reason), reason);
        arguments = continued(first_, *arguments.project);
        continue;
      }
      const TrainingEnd end = carry_out(*start, *directory_, begin_, notice);
      if (!end.is_changed && !end.rewind) return end.exit_code;
      notice.clear();
      if (end.is_changed) {
        arguments = changed(first_, directory_->root());
        continue;
      }
      arguments = continued(first_, directory_->root());
      arguments.rewind = end.rewind;
      notice = end.rewind->reason;
      if (end.rewind->leaves_out) {
        notice += ": the training continues from the checkpoint, with the batches behind that step";
      }
    }
  }

  /// The run's folder, once there is one.
  const std::optional<RunDirectory>& directory() const { return directory_; }

 private:
  const Arguments& first_;
  std::optional<RunSource> source_;  ///< Of the first start, if it is known.
  std::chrono::steady_clock::time_point begin_;
  World& world_;
  std::optional<RunDirectory> directory_;
};

/// Notes the failure of a process without other output; rank 0 reports the first failure of all.
void note_failure(const World& world, const RunDirectory& directory, const std::string& text) {
  try {
    AppendFile(fmt::format("{}/train/rank-{}.log", directory.root(), world.rank()))
        .append(fmt::format("{} {}: {}\n", time_name(), world.describe(world.rank()), text));
  } catch (const Error& error) {
    fmt::print(stderr, "stepop: rank {}: {}\nstepop: {}\n", world.rank(), shown_text(text),
               shown_text(error.what()));
  }
}

}  // namespace

int run_command(const Arguments& given) {
  const auto begin = std::chrono::steady_clock::now();
  // Each process looks before it meets the others, and so before rank 0 begins a run.
  ProcessSettings settings = with_process_settings(given.resume ? with_newest_run(given) : given);
  const Arguments& arguments = settings.arguments;
  if (arguments.processes && !environment_variable("STEPOP_PROCESSES")) {
    return run_processes(arguments, settings.timeout);
  }
  if (arguments.json) begin_facts();  // in each process; the one that starts them says nothing
  const SignalGuard signals;
  const std::unique_ptr<World> world = World::join(read_place(), throw_if_signal_arrived);
  say_met();
  // A run that others may train is looked for again: they were waited for.
  if (!world->is_alone()) settings.source.reset();
  Starts starts(arguments, std::move(settings.source), begin, *world);
  try {
    const int exit_code = starts.run();
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
    if (!is_of_all && starts.directory()) note_failure(*world, *starts.directory(), text);
    // Printed once for each machine; on rank 0's machine, rank 1 prints it.
    if (world->is_cut_off() && (world->place().local_rank == 0 || world->rank() == 1)) {
      fmt::print(stderr, "stepop: {}: {}\n", world->describe(world->rank()), shown_text(text));
    }
    return exit_code;
  }
}

}  // namespace stepop
