#pragma once

#include <stdexcept>
#include <string>

namespace stepop {

/// What a user can mend: the message says where, what was found and what would help. The program
/// prints it without a stack trace and exits with `exit_code()`.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int exit_code = 1)
      : std::runtime_error(message), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// A mistake in the command line or in a config; exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(message, 2) {}
};

}  // namespace stepop
