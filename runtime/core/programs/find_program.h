#pragma once

#include <string>

namespace stepop {

/// The path of a program that can be run: `name` itself when it has a slash, otherwise the first of
/// that name in the folders of $PATH, as a shell finds it. Empty when there is none.
std::string find_program(const std::string& name);

}  // namespace stepop
