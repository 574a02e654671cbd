#pragma once

#include <string>
#include <vector>

#include "runtime/core/config/value.h"

namespace stepop {

/// A key that a config lacks, or has as null, and the default that was taken instead.
struct TakenDefault {
  std::string path;
  std::vector<Value> values;  ///< Several where readers of one key have different defaults.
};

}  // namespace stepop
