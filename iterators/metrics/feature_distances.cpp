#include "iterators/metrics/feature_distances.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::metrics {
namespace {

at::Tensor checked_features(const at::Tensor& rows) {
  if (rows.dim() == 2) return rows.to(at::kDouble);
  throw Error(fmt::format("expected features [N, D], found {}", describe_tensor(rows)));
}

/// A matrix R [D, rank] with R R^T = `covariance`.
at::Tensor root_of(const at::Tensor& covariance) {
  const auto [values, vectors] = at::linalg_eigh(covariance);
  const double largest = values.max().item<double>();
  const double noise = std::numeric_limits<double>::epsilon() *
                       static_cast<double>(covariance.size(0)) * std::max(largest, 0.0);
  const int64_t rank = values.gt(noise).sum().item<int64_t>();  // values are in ascending order
  const int64_t first = values.size(0) - rank;
  return vectors.narrow(1, first, rank).mul(values.narrow(0, first, rank).sqrt());
}

/// Draws `count` different numbers below `rows`, in ascending order.
std::vector<int64_t> choose(int64_t rows, int64_t count, Random& random) {
  std::vector<int64_t> numbers(static_cast<size_t>(rows));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::swap(numbers[static_cast<size_t>(i)],
              numbers[static_cast<size_t>(i + random.below(rows - i))]);
  }
  numbers.resize(static_cast<size_t>(count));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Reads the rows `numbers`, consecutive rows in one call.
at::Tensor gather(const std::vector<int64_t>& numbers, const ReadRows& read) {
  std::vector<at::Tensor> runs;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    runs.push_back(read(numbers[i], static_cast<int64_t>(end - i)));
    i = end;
  }
  return at::cat(runs);
}

at::Tensor kernel(const at::Tensor& a, const at::Tensor& b) {
  return at::matmul(a, b.t()).div(static_cast<double>(a.size(1))).add(1).pow(3);
}

/// The mean of the kernel over the pairs of different vectors in a set.
double mean_of_pairs(const at::Tensor& set) {
  const at::Tensor values = kernel(set, set);
  const auto count = static_cast<double>(set.size(0));
  return values.sum().sub(values.diagonal().sum()).item<double>() / (count * (count - 1));
}

}  // namespace

FeatureMoments feature_moments(int64_t rows, int64_t block, const ReadRows& read) {
  if (rows < 2) {
    throw Error(fmt::format("the covariance of features needs 2 examples or more, found {}", rows));
  }
  const auto for_blocks = [&](const auto& call) {
    for (int64_t first = 0; first < rows; first += block) {
      call(checked_features(read(first, std::min(block, rows - first))));
    }
  };
  FeatureMoments made;
  for_blocks([&](const at::Tensor& features) {
    const at::Tensor sum = features.sum(0);
    made.mean = made.mean.defined() ? made.mean.add(sum) : sum;
  });
  made.mean = made.mean.div(static_cast<double>(rows));
  made.covariance = at::zeros({made.mean.size(0), made.mean.size(0)}, made.mean.options());
  for_blocks([&](const at::Tensor& features) {
    const at::Tensor centred = features.sub(made.mean);
    made.covariance.addmm_(centred.t(), centred);
  });
  made.covariance.div_(static_cast<double>(rows - 1));
  if (!at::isfinite(made.covariance).all().item<bool>()) {
    throw Error("features are NaN or infinite");
  }
  return made;
}

double frechet_distance(const FeatureMoments& a, const FeatureMoments& b) {
  if (a.mean.sizes() != b.mean.sizes()) {
    throw Error(fmt::format("features of {} and of {} numbers cannot be compared", a.mean.numel(),
                            b.mean.numel()));
  }
  const at::Tensor product = at::matmul(root_of(a.covariance).t(), root_of(b.covariance));
  const double root = product.numel() == 0 ? 0 : at::linalg_svdvals(product).sum().item<double>();
  const double means = a.mean.sub(b.mean).square().sum().item<double>();
  const double traces =
      a.covariance.diagonal().sum().add(b.covariance.diagonal().sum()).item<double>();
  return std::max(0.0, means + traces - 2 * root);
}

double squared_mmd(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = checked_features(a);
  const at::Tensor y = checked_features(b);
  if (x.size(0) < 2 || y.size(0) < 2 || x.size(1) != y.size(1)) {
    throw Error(fmt::format("expected two sets of 2 or more vectors of one length, found {} and {}",
                            describe_tensor(a), describe_tensor(b)));
  }
  return mean_of_pairs(x) + mean_of_pairs(y) - 2 * kernel(x, y).mean().item<double>();
}

KernelDistance kernel_distance(int64_t rows, const ReadRows& read_a, const ReadRows& read_b,
                               const KernelDistanceOptions& options) {
  if (options.subset_size > rows) {
    throw Error(
        fmt::format("a subset has {} examples, and there are {}: give a smaller subset_size",
                    options.subset_size, rows));
  }
  std::vector<double> found;
  for (int64_t i = 0; i < options.subsets; ++i) {
    Random random(mix_seed({options.seed, static_cast<uint64_t>(i)}));
    const at::Tensor a = gather(choose(rows, options.subset_size, random), read_a);
    const at::Tensor b = gather(choose(rows, options.subset_size, random), read_b);
    found.push_back(squared_mmd(a, b));
  }
  const auto count = static_cast<double>(found.size());
  KernelDistance made;
  made.mean = std::accumulate(found.begin(), found.end(), 0.0) / count;
  double squares = 0;
  for (const double value : found) squares += (value - made.mean) * (value - made.mean);
  made.deviation = std::sqrt(squares / count);
  return made;
}

}  // namespace stepop::metrics
