#include <string>

#include "runtime/core/base/error.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/run_command.h"

namespace stepop {

namespace {

int predict_command(const Arguments& arguments, const NoFlags& /*own*/) {
  open_run(arguments, arguments.operands.front());
  Arguments start = arguments;
  start.command = nullptr;
  start.project = arguments.operands.front();
  start.predicts = true;
  return run_command(start);
}

STEPOP_REGISTER_COMMAND(
    predict_command, NoFlags,
    {.name = "predict",
     .group = CommandGroup::kOneRun,
     .operands = "RUN [-b new_data.yaml] [-n NAME] [-c CHECKPOINT] [--path/key value ...]",
     .fewest = 1,
     .most = 1,
     .about =
         "what the network of a run makes of datasets/predict, rows without labels: an outputs.h5",
     .takes = "name base checkpoint log_level current-code check graph processes allow-unknown",
     .example = "stepop predict logs/<time>_digits -b photos.yaml -n photos"});

}  // namespace

}  // namespace stepop
