#pragma once

#include <string>

#include "eval_out/callbacks/callback.h"
#include "iterators/metrics/feature_distances.h"
#include "runtime/core/components/parameters.h"

namespace stepop::metrics {

// Distances of features [N, D] in two arrays of an evaluation's outputs.

/// The Frechet distance, as `fid`. `real` and `fake` are the arrays' keys.
Scalars frechet_of_outputs(const CallbackArguments& arguments, const std::string& real,
                           const std::string& fake);

/// Declares `subsets`, `subset_size` and `seed`. Without a `subset_size` it is 0, which means 1000,
/// or all examples if there are fewer.
void declare_kernel_options(Parameters& p, KernelDistanceOptions& options);

/// KID, as `kid` and `deviation`.
Scalars kernel_distance_of_outputs(const CallbackArguments& arguments, const std::string& real,
                                   const std::string& fake, KernelDistanceOptions options);

}  // namespace stepop::metrics
