#pragma once

#include <string>

#include "runtime/data/batch.h"

namespace stepop {

/// `image of example 57 has NaN`, where 57 is the index in the dataset; one part for each
/// floating-point tensor of the batch that has NaN or infinity. Empty when there is none.
std::string non_finite_data(const Batch& batch);

}  // namespace stepop
