#include <string>

#include "runtime/core/base/error.h"
#include "runtime/tools/cli/commands.h"

namespace stepop {

int predict_command(const Arguments& arguments) {
  if (arguments.train || arguments.retrain) {
    throw UsageError("stepop predict trains nothing: leave out -t and -r: " +
                     arguments.command->usage());
  }
  if (arguments.debug || arguments.profile) {
    throw UsageError("stepop predict: -d and --profile are for trainings; --check tries one batch");
  }
  open_run(arguments, arguments.operands.front());
  Arguments start = arguments;
  start.command = nullptr;
  start.project = arguments.operands.front();
  start.predicts = true;
  return run_command(start);
}

}  // namespace stepop
