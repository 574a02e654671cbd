#include "iterators/metrics/feature_callbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "eval_out/callbacks/row_values.h"
#include "runtime/core/base/error.h"

namespace stepop::metrics {
namespace {

constexpr int64_t kUsualSubset = 1000;

/// The stored features of one key.
class StoredFeatures {
 public:
  StoredFeatures(const CallbackArguments& arguments, const std::string& key,
                 const std::string& parameter)
      : values_(arguments, key, parameter, RowValues::From::kFile) {
    if (values_.shape().size() == 1) return;
    throw Error(fmt::format("{} must hold features, a vector an example; found {} {}",
                            values_.name(), type_name(values_.dtype()),
                            shape_text(values_.shape())));
  }

  int64_t rows() const { return values_.rows(); }
  ReadRows reader() const {
    return [this](int64_t first, int64_t count) {
      const at::Tensor rows = values_.read(first, count);
      values_.refuse_nan(rows, first);
      return rows;
    };
  }
  FeatureMoments moments() const {
    return feature_moments(rows(), values_.rows_per_block(), reader());
  }

 private:
  RowValues values_;
};

struct FeatureKeys {
  std::string real = "real_features";
  std::string fake = "fake_features";

  void declare(Parameters& p) {
    p.add("real", real, "the key of the one, in the outputs");
    p.add("fake", fake, "of the other");
  }
};

struct KidParams : FeatureKeys {
  KernelDistanceOptions options;

  void declare(Parameters& p) {
    FeatureKeys::declare(p);
    declare_kernel_options(p, options);
  }
};

Logs fid(const CallbackArguments& arguments, const FeatureKeys& keys) {
  return {.scalars = frechet_of_outputs(arguments, keys.real, keys.fake)};
}

Logs kid(const CallbackArguments& arguments, const KidParams& params) {
  return {.scalars =
              kernel_distance_of_outputs(arguments, params.real, params.fake, params.options)};
}

STEPOP_REGISTER_CALLBACK(
    fid, fid, {"The Frechet distance of two arrays of features (FID), by mean and covariance."});
STEPOP_CALLBACK_KEYS(fid, {"real", KeyParameter::From::kFile}, {"fake", KeyParameter::From::kFile});
STEPOP_REGISTER_CALLBACK(
    kid, kid,
    {"The kernel distance of two arrays of features (KID): unbiased, kernel of degree 3."});
STEPOP_CALLBACK_KEYS(kid, {"real", KeyParameter::From::kFile}, {"fake", KeyParameter::From::kFile});

}  // namespace

Scalars frechet_of_outputs(const CallbackArguments& arguments, const std::string& real,
                           const std::string& fake) {
  const StoredFeatures a(arguments, real, "real");
  const StoredFeatures b(arguments, fake, "fake");
  return {{"fid", frechet_distance(a.moments(), b.moments())}};
}

void declare_kernel_options(Parameters& p, KernelDistanceOptions& options) {
  std::optional<int64_t> subset_size;
  int64_t seed = 0;
  p.add("subsets", options.subsets, "over which its mean and deviation are", at_least(1));
  p.add("subset_size", subset_size, "examples of each, by default 1000, or all", at_least(2));
  p.add("seed", seed, "of the choice", at_least(0));
  options.subset_size = subset_size.value_or(0);
  options.seed = static_cast<uint64_t>(seed);
}

Scalars kernel_distance_of_outputs(const CallbackArguments& arguments, const std::string& real,
                                   const std::string& fake, KernelDistanceOptions options) {
  const StoredFeatures a(arguments, real, "real");
  const StoredFeatures b(arguments, fake, "fake");
  if (options.subset_size == 0) options.subset_size = std::min(kUsualSubset, a.rows());
  const KernelDistance found = kernel_distance(a.rows(), a.reader(), b.reader(), options);
  return {{"kid", found.mean}, {"deviation", found.deviation}};
}

}  // namespace stepop::metrics
