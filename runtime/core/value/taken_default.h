#pragma once

#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

/// A key that is missing or null in a config, and the default that was used instead.
struct TakenDefault {
  std::string path;
  std::vector<Value> values;  ///< Several if the key's readers have different defaults.
};

}  // namespace stepop
