#pragma once

#include <functional>

#include "runtime/base/error.h"

namespace stepop {

/// The run was asked to end; thrown out of what can be broken off and done again, such as an
/// evaluation or the wait for a slow dataset. Not a failure: whoever catches errors to go on lets
/// it pass.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// Called now and then by what may take long; throws Interrupted when the run was asked to end.
using InterruptCheck = std::function<void()>;

}  // namespace stepop
