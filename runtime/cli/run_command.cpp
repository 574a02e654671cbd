// A start, and further ones when the config of the training is changed while it runs.
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/interrupt.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/start.h"
#include "runtime/run/live_change.h"
#include "runtime/run/run_directory.h"
#include "runtime/run/signals.h"

namespace stepop {
namespace {

/// Goes on with the run in the folder `root`, as the start `first` did.
Arguments continued(const Arguments& first, const std::string& root) {
  Arguments arguments = first;
  arguments.project = root;
  arguments.base.clear();
  arguments.overrides.clear();
  arguments.name.reset();
  arguments.checkpoint.reset();
  arguments.retrain = false;
  arguments.takes_change = false;
  return arguments;
}

/// The same with the change of its config that is there.
Arguments changed(const Arguments& first, const std::string& root) {
  Arguments arguments = continued(first, root);
  const RunDirectory directory = RunDirectory::at(root);
  arguments.base = {directory.last_config(), LiveChange(directory).path()};
  arguments.takes_change = true;
  return arguments;
}

}  // namespace

int run_command(const Arguments& first) {
  const auto begin = std::chrono::steady_clock::now();
  const SignalGuard signals;
  Arguments arguments = first;
  std::string notice;
  for (;;) {
    bool has_begun = false;
    try {
      const StartEnd end = run_start(arguments, begin, notice, has_begun);
      if (end.changed_run.empty()) return end.exit_code;
      arguments = changed(first, end.changed_run);
      notice.clear();
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      if (!arguments.takes_change || has_begun) throw;
      const std::string root = *arguments.project;
      const std::string refused = LiveChange(RunDirectory::at(root)).refuse();
      notice = fmt::format(
          "the change of the config is refused, and is now {}; the training goes "
          "on as it was: {}",
          refused, error_text(error));
      arguments = continued(first, root);
    }
  }
}

}  // namespace stepop
