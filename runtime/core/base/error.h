#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace stepop {

/// An error that the user can fix: the message says where the error is, what was found and what
/// would help. The program prints it without a stack trace and exits with `exit_code()`.
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

/// The message of an exception, without the stack trace of LibTorch's exceptions.
std::string error_text(const std::exception& error);

/// The same for the current exception, of whatever type: `throw "text"` and `throw 42` are also
/// legal. Called in a `catch (...)`.
std::string text_of_current_exception();

/// Runs `call`, a part of the user's code. An exception that is no std::exception becomes an Error
/// that begins with `place`; other exceptions are passed on.
template <class Call>
auto with_std_exceptions(const std::string& place, const Call& call) {
  try {
    return call();
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    throw Error(place + ": " + text_of_current_exception());
  }
}

}  // namespace stepop
