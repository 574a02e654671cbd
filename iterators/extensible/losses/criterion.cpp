#include "iterators/extensible/losses/criterion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cosine_similarity.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <fmt/format.h>

#include <algorithm>

#include "iterators/losses/loss_manager.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {

Criterion::Criterion(const Config& params, std::string_view key)
    : name_(params.get<std::string>(key)) {
  if (name_ == "l1" || name_ == "l2" || name_ == "cosine") return;
  const auto& known = stepop::losses::loss_functions();
  if (std::ranges::find(known.registrations(), name_, &Registration::name) !=
      known.registrations().end()) {
    function_ = known.factory(name_, params, key)(params);
    return;
  }
  throw params.error(key,
                     fmt::format("expected l1, l2, cosine or a loss function (`stepop list \"loss "
                                 "function\"`), found \"{}\"",
                                 name_));
}

at::Tensor Criterion::operator()(const at::Tensor& a, const at::Tensor& b) const {
  if (a.sizes() != b.sizes()) {
    throw Error(fmt::format("expected two tensors of one shape, found {} and {}",
                            describe_tensor(a), describe_tensor(b)));
  }
  const at::Tensor x = a.to(at::kFloat);
  const at::Tensor y = b.to(at::kFloat);
  if (function_) return function_({x, y}).mean();
  if (name_ == "l1") return at::l1_loss(x, y);
  if (name_ == "l2") return at::mse_loss(x, y);
  return (1 - at::cosine_similarity(x.flatten(1), y.flatten(1), 1)).mean();
}

}  // namespace stepop::extensible
