#pragma once

#include <string>
#include <vector>

#include "runtime/tools/cli/arguments.h"

namespace stepop {

/// `--processes N`: starts this program N times, with the same words and a place for each, and
/// waits for all. Signals that request an end are passed on, once; when one process dies without a
/// message, the others end by themselves; a process that stays stopped (SIGSTOP) for `timeout`
/// seconds before all have met is ended, and so the others are. Returns the exit code of the first
/// process that failed. Throws UsageError for an invalid number, and inside processes that a
/// launcher started.
int run_processes(const Arguments& arguments, double timeout);

/// Called by a process of `run_processes` once it has met the others.
void say_met();

/// The words with which this process was started, beginning with the program's name.
std::vector<std::string> own_words();

/// The environment variables, `NAME=value`, that give each of `count` processes on this machine its
/// place; by rank. Each call takes another port.
std::vector<std::vector<std::string>> places_of_processes(int count);

}  // namespace stepop
