#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace stepop::metrics {

// How far two sets of feature vectors are apart, each [N, D]. They are read block by block, so that
// the memory that is needed does not grow with N.

/// Reads rows `first` to `first + count`: [count, D].
using ReadRows = std::function<at::Tensor(int64_t first, int64_t count)>;

/// The mean of features and their covariance, divided by N - 1; float64.
struct FeatureMoments {
  at::Tensor mean;        ///< [D]
  at::Tensor covariance;  ///< [D, D]
};

/// Of `rows` vectors, `block` at once. Throws Error for less than two, and for those that are not
/// finite.
FeatureMoments feature_moments(int64_t rows, int64_t block, const ReadRows& read);

/// The Frechet distance of two Gaussians (Heusel et al., 2017), FID of features of Inception:
/// |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), never below 0.
///
/// The trace of the root is the sum of the singular values of R1^T R2, where R R^T = C by a
/// symmetric eigendecomposition. What is 0 but for rounding is left out of R, so that covariances
/// of less vectors than dimensions lose no digits.
double frechet_distance(const FeatureMoments& a, const FeatureMoments& b);

/// The square of the maximum mean discrepancy of two sets, [M, D] and [N, D], with the kernel
/// (x y / D + 1)^3: the unbiased estimate, which may be below 0 (Binkowski et al., 2018). Throws
/// Error for sets of less than two.
double squared_mmd(const at::Tensor& a, const at::Tensor& b);

/// What kernel_distance does.
struct KernelDistanceOptions {
  int64_t subsets = 100;
  int64_t subset_size = 1000;  ///< Vectors of each set in a subset.
  uint64_t seed = 0;
};

struct KernelDistance {
  double mean = 0;
  double deviation = 0;  ///< Of the subsets, divided by their number.
};

/// KID (Binkowski et al., 2018): squared_mmd of random subsets, each without repetitions. Of two
/// sets with `rows` vectors each. Throws Error when there are less than a subset takes.
KernelDistance kernel_distance(int64_t rows, const ReadRows& read_a, const ReadRows& read_b,
                               const KernelDistanceOptions& options);

}  // namespace stepop::metrics
