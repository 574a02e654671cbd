#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {
namespace extensible {

/// The distance of two tensors of one shape, by the `criterion` of a loss: `l1` and `l2`, the means
/// of absolute and of squared differences, `cosine`, the mean over the examples of one minus their
/// cosine similarity, or the mean of a registered loss function (STEPOP_REGISTER_LOSS_FUNCTION).
class Criterion {
 public:
  Criterion() = default;
  /// Throws UsageError for another name.
  Criterion(const Config& params, std::string_view key);

  /// [], in float32. Throws Error for different shapes.
  at::Tensor operator()(const at::Tensor& a, const at::Tensor& b) const;

 private:
  std::string name_;
  /// A registered loss function; empty for the three names above.
  std::function<at::Tensor(const std::vector<at::Tensor>&)> function_;
};

}  // namespace extensible

template <>
struct ParameterOf<extensible::Criterion> {
  static extensible::Criterion read(const Config& config, std::string_view path, const Allowed&) {
    return {config, path};
  }
  static std::string kind() { return "text"; }
};

namespace extensible {

/// Declares the `criterion` of a loss.
inline void require_criterion(Parameters& p, Criterion& criterion) {
  p.require("criterion", criterion, "l1, l2, cosine or a loss function");
}

}  // namespace extensible
}  // namespace stepop
