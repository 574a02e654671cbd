#pragma once

#include <exception>
#include <string>

namespace stepop {

/// What an exception says, for people: without the stack trace that LibTorch's carry.
std::string error_text(const std::exception& error);

}  // namespace stepop
