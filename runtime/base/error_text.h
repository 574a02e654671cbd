#pragma once

#include <exception>
#include <string>

#include "runtime/base/error.h"

namespace stepop {

/// What an exception says, for people: without the stack trace that LibTorch's carry.
std::string error_text(const std::exception& error);

/// The same of the exception that is being handled, of whatever type: `throw "text"` and `throw 42`
/// are legal, too. To be called in a `catch (...)`.
std::string text_of_current_exception();

/// Runs `call`, a part of a user's code: what it throws that is no std::exception becomes an Error
/// that begins with `place`; anything else passes.
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
