#pragma once

#include "runtime/cli/arguments.h"

namespace stepop {

/// Trains or evaluates, as the arguments say. Returns the exit code: 0; 3 when a callback of an
/// evaluation failed; 128 + the signal's number after a signal. Throws Error for anything else.
int run_command(const Arguments& arguments);

/// Prints the resolved config as YAML.
void config_command(const Arguments& arguments);

/// Prints every registered component with its parameters.
void list_command();

/// Reads every checkpoint of a run and prints a table of them: step, epoch, size, the config's
/// metric, age, and which is the latest, the best, damaged. Throws UsageError for a folder that is
/// no run's.
void checkpoints_command(const Arguments& arguments);

}  // namespace stepop
