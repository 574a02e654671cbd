#pragma once

#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// The names of the classes by key, in the order of their numbers, of the run whose evaluation the
/// file holds.
OrderedMap<std::vector<std::string>> stored_class_names(const EvalFile& file);

}  // namespace stepop
