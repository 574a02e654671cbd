#pragma once

#include <string>
#include <vector>

#include "runtime/tools/cli/arguments.h"

namespace stepop {

/// `--processes N`: starts this program N times, with the same words and a place for each, and
/// waits for all. Signals that ask to end are passed on, once; when one process dies without a word
/// the others end by themselves. Returns the exit code of the first that failed. Throws UsageError
/// for a number that is none, and within processes that a launcher started.
int run_processes(const Arguments& arguments);

/// To be called by a process that `run_processes` started, once it has met the others.
void say_met();

/// The words with which this process was started, its own name first.
std::vector<std::string> own_words();

/// The variables of the environment, `NAME=value`, that give each of `count` processes of this
/// machine its place among them; by rank. Each call takes another port.
std::vector<std::vector<std::string>> places_of_processes(int count);

}  // namespace stepop
