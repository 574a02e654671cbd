#pragma once

#include <functional>

#include "runtime/core/base/error.h"

namespace stepop {

/// The run was asked to end. Thrown by work that can be stopped and repeated, such as an evaluation
/// or the wait for a slow dataset. Not a failure: code that catches errors in order to continue
/// must let it pass.
class Interrupted : public Error {
 public:
  using Error::Error;
};

/// Called regularly by long work; throws Interrupted when the run was asked to end.
using InterruptCheck = std::function<void()>;

}  // namespace stepop
