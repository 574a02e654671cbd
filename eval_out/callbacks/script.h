#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval_out/callbacks/callback.h"

namespace stepop {

/// Whether a callback that is given by name only is a Python script: `./my_report.py`.
bool is_script(std::string_view name);

/// Finds mistakes before the run starts: throws UsageError, which begins with the place `path` in
/// `config`, when the script or Python is missing. Declares all of `params` as known, since the
/// script receives them.
void check_script(const std::string& script, const Config& config, std::string_view path,
                  const Config& params);

/// Runs the script as `python script OUTPUTS ROOT [--key value ...]`, with the evaluation's file
/// and folder and all of `arguments.params` except `class`, `path` and `python`. Lists and maps are
/// passed as JSON; nulls are left out.
///
/// Python is the parameter `python`, else $STEPOP_PYTHON, else .venv/bin/python3 in the program's
/// folder or its parent, else python3 on the PATH. The script's standard input is empty. The last
/// line of its standard output that is not blank must be a JSON object of numbers, its scalars,
/// with NaN and Infinity as Python's json prints them; a script that prints nothing has no scalars.
///
/// Throws Error for any other last line, and for a script that fails, with its exit status and the
/// end of its standard error. If the file's interrupt check throws, the script and the other
/// processes in its process group are killed first, and the exception is passed on.
Logs run_script(const CallbackArguments& arguments, const std::string& script);

/// Throws UsageError, which begins with the place `path` in `config`, when there is no Python to
/// run `what` with.
void check_python(const std::string& what, const Config& config, std::string_view path,
                  const Config& params);

/// A program of Python that always prints its result.
struct MetricProgram {
  std::string name;                ///< In messages.
  std::vector<std::string> words;  ///< After `python`: `-c`, code, and more.
  /// With this exit status the last line that it prints is a JSON text, the whole reason of its
  /// failure.
  int refusal = 0;
};

/// The same as `run_script` for such a program. Throws Error when it prints nothing. The processes
/// that it leaves behind are ended.
Logs run_metric(const CallbackArguments& arguments, const MetricProgram& program);

}  // namespace stepop
