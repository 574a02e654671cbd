#pragma once

#include <string>

#include "runtime/core/base/error.h"

namespace stepop {

/// What an Error that `call` throws says; "no error" when it throws none.
template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace stepop
