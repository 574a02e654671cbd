#pragma once

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// A network that can compute the same in another way, which is faster on some machines.
class NetworkAlternatives {
 public:
  virtual ~NetworkAlternatives() = default;
  /// The parameters of the network that choose the other way; empty where there is none.
  virtual OrderedMap<Value> alternatives() const = 0;
};

}  // namespace stepop
