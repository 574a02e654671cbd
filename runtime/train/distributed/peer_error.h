#pragma once

#include "runtime/core/base/error.h"

namespace stepop {

/// Another process ended the training, or the connection to it broke. The message is the other
/// process's message, with its rank and host.
class PeerError : public Error {
 public:
  using Error::Error;
};

}  // namespace stepop
