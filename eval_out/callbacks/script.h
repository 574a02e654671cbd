#pragma once

#include <string>
#include <string_view>

#include "eval_out/callbacks/callback.h"

namespace stepop {

/// Whether a callback that is given by its name alone is a Python script: `./my_report.py`.
bool is_script(std::string_view name);

/// Finds mistakes before the run starts: throws UsageError, which begins with the place of
/// `config`'s `path`, when there is no such script or no Python. Makes all of `params`, which the
/// script is handed, known.
void check_script(const std::string& script, const Config& config, std::string_view path,
                  const Config& params);

/// Runs the script as `python script OUTPUTS ROOT [--key value ...]`, with the file and the folder
/// of the evaluation and what `arguments.params` has besides `class`, `path` and `python`: lists
/// and maps as JSON, nulls not at all.
///
/// Python is the parameter `python`, else $STEPOP_PYTHON, else .venv/bin/python3 in the folder of
/// the program or in the one above it, else python3 on the PATH. The script's standard input is
/// empty. The last line of its standard output that is not blank is a JSON object of numbers, its
/// scalars, with NaN and Infinity as Python's json prints them; a script that prints nothing has
/// none.
///
/// Throws Error for another last line, and for a script that fails, with its exit status and the
/// end of what it wrote to its standard error. What the file's interrupt check throws passes, once
/// the script and what it started in its process group are killed.
Logs run_script(const CallbackArguments& arguments, const std::string& script);

}  // namespace stepop
