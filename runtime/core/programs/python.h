#pragma once

#include <string>

namespace stepop {

/// The Python that runs scripts for this program: `given` unless it is empty, otherwise the
/// environment's STEPOP_PYTHON, otherwise the Python of the `.venv` next to or above the program,
/// otherwise `python3`. Does not check whether it exists.
std::string find_python(const std::string& given = "");

/// The Python that runs a user's own code, which imports what the user has installed: the same,
/// but the Python of the active environment (VIRTUAL_ENV, CONDA_PREFIX) comes before a `.venv`.
std::string find_user_python(const std::string& given = "");

/// Why `find_user_python` takes the Python of stepop's own folder rather than another one that is
/// first on the PATH, and how to choose; empty where it does not.
std::string python_choice(const std::string& given = "");

/// The folder with the Python package `stepop.eval` of this program's version: in its source tree,
/// or where it was installed. Empty when Python finds the package by itself, as with a wheel.
std::string find_python_package();

}  // namespace stepop
