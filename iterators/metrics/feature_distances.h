#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace stepop::metrics {

// Distances of two sets of feature vectors, each [N, D]. The vectors are read block by block, so
// that the needed memory does not grow with N.

/// Reads rows `first` to `first + count`: [count, D].
using ReadRows = std::function<at::Tensor(int64_t first, int64_t count)>;

/// The mean of features and their covariance, divided by N - 1; float64.
struct FeatureMoments {
  at::Tensor mean;        ///< [D]
  at::Tensor covariance;  ///< [D, D]
};

/// The moments of `rows` vectors, read in blocks of `block`. Throws Error for fewer than two
/// vectors, and for vectors that are not finite.
FeatureMoments feature_moments(int64_t rows, int64_t block, const ReadRows& read);

/// The Frechet distance of two Gaussians (Heusel et al., 2017), FID for features of Inception:
/// |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), never below 0.
///
/// The trace of the root is the sum of the singular values of R1^T R2, where R R^T = C by a
/// symmetric eigendecomposition. Eigenvalues that are 0 up to rounding are left out of R, so that
/// covariances of fewer vectors than dimensions lose no digits.
double frechet_distance(const FeatureMoments& a, const FeatureMoments& b);

/// The square of the maximum mean discrepancy of two sets, [M, D] and [N, D], with the kernel
/// (x y / D + 1)^3: the unbiased estimate, which may be below 0 (Binkowski et al., 2018). Throws
/// Error for a set of fewer than two vectors.
double squared_mmd(const at::Tensor& a, const at::Tensor& b);

/// The options of kernel_distance.
struct KernelDistanceOptions {
  int64_t subsets = 100;
  int64_t subset_size = 1000;  ///< Vectors of each set in a subset.
  uint64_t seed = 0;
};

struct KernelDistance {
  double mean = 0;
  double deviation = 0;  ///< The standard deviation over the subsets, with their number as divisor.
};

/// KID (Binkowski et al., 2018) of two sets with `rows` vectors each: squared_mmd of random
/// subsets, each without repetitions. Throws Error when a set has fewer vectors than a subset.
KernelDistance kernel_distance(int64_t rows, const ReadRows& read_a, const ReadRows& read_b,
                               const KernelDistanceOptions& options);

}  // namespace stepop::metrics
