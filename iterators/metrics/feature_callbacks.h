#pragma once

#include <string>

#include "eval_out/callbacks/callback.h"
#include "iterators/metrics/feature_distances.h"

namespace stepop::metrics {

// Distances of features [N, D] that are two arrays of an evaluation's outputs.

/// The Frechet distance, as `fid`. `real` and `fake` are the arrays' keys.
Scalars frechet_of_outputs(const CallbackArguments& arguments, const std::string& real,
                           const std::string& fake);

/// `subsets`, `subset_size` and `seed` of a config. Without `subset_size` it is 0: 1000, or all
/// examples where there are less.
KernelDistanceOptions read_kernel_options(const Config& params);

/// KID, as `kid` and `deviation`.
Scalars kernel_distance_of_outputs(const CallbackArguments& arguments, const std::string& real,
                                   const std::string& fake, KernelDistanceOptions options);

}  // namespace stepop::metrics
