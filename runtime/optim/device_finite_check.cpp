#include "runtime/optim/device_finite_check.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace stepop {

void DeviceFiniteCheck::begin(const at::Device& device) {
  if (!found_.defined()) {
    found_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
    one_ = at::ones({}, found_.options());
    reset();
  } else if (!is_sticky_) {
    found_.zero_();
  }
}

const at::Tensor& DeviceFiniteCheck::check(const std::vector<at::Tensor>& tensors,
                                           int64_t global_step) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  const at::Device device = tensors.front().device();
  begin(device);
  std::vector<at::Tensor> here = std::exchange(losses_, {});
  here.insert(here.end(), tensors.begin(), tensors.end());
  const auto elsewhere_begin =
      std::stable_partition(here.begin(), here.end(),
                            [&](const at::Tensor& tensor) { return tensor.device() == device; });
  const std::vector<at::Tensor> elsewhere(elsewhere_begin, here.end());
  here.erase(elsewhere_begin, here.end());
  // It multiplies by 1, which leaves every number as it is.
  at::_amp_foreach_non_finite_check_and_unscale_(here, found_, one_);
  for (const auto& tensor : elsewhere) {
    at::Tensor found = at::zeros({}, found_.options().device(tensor.device()));
    at::_amp_foreach_non_finite_check_and_unscale_({tensor}, found, at::ones_like(found));
    at::maximum_out(found_, found_, found.to(device, /*non_blocking=*/true));
  }
  left_out_.add_(found_);
  first_step_ = at::where(found_.ne(0), first_step_.clamp_max(global_step), first_step_);
  return found_;
}

DeviceFiniteCheck::Reading DeviceFiniteCheck::read() const {
  if (!found_.defined()) return {};
  const at::Tensor numbers = at::stack({left_out_, first_step_}).cpu();
  const double* values = numbers.const_data_ptr<double>();
  if (values[0] == 0) return {};
  return {static_cast<int64_t>(values[0]), static_cast<int64_t>(values[1])};
}

void DeviceFiniteCheck::reset() {
  if (!found_.defined()) return;
  left_out_ = at::zeros({}, found_.options().dtype(at::kDouble));
  first_step_ = at::full_like(left_out_, std::numeric_limits<double>::infinity());
}

}  // namespace stepop
