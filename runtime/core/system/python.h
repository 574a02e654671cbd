#pragma once

#include <string>

namespace stepop {

/// The Python that runs scripts beside this program: `given` unless it is empty, else the
/// environment's STEPOP_PYTHON, else that of the `.venv` beside or above the program, else
/// `python3`. Whether it is there is not looked at.
std::string find_python(const std::string& given = "");

/// Whether a shell would find that program: a path, or a name that is on the PATH.
bool can_run(const std::string& program);

/// The folder that has the Python package `stepop_eval` of this program's own version: in its tree,
/// or where it was installed. Empty when Python has to find it by itself, as that of a wheel does.
std::string find_python_package();

}  // namespace stepop
