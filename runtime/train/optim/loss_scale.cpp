#include "runtime/train/optim/loss_scale.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

constexpr double kGrowth = 2;
constexpr double kBackoff = 0.5;
constexpr double kLargest = 0x1p100;  // its reciprocal is no denormal number
constexpr const char* kFactor = "loss_scale";
constexpr const char* kUpdates = "loss_scale_updates";

}  // namespace

LossScale::Settings LossScale::read(const Config& config) {
  Settings settings;
  settings.init_scale = own_key<double>(config, "loss_scale/init_scale");
  if (!std::isfinite(settings.init_scale)) {
    throw config.error("loss_scale/init_scale",
                       fmt::format("expected a finite number, found {}", settings.init_scale));
  }
  settings.growth_interval = own_key<int64_t>(config, "loss_scale/growth_interval");
  return settings;
}

LossScale::LossScale(const Settings& settings, const c10::Device& device)
    : settings_(settings),
      factor_(at::full({}, settings.init_scale, at::TensorOptions(at::kFloat).device(device))),
      updates_(at::zeros({}, factor_.options().dtype(at::kInt))),
      found_(at::zeros({}, factor_.options())) {}

void LossScale::unscale(std::vector<at::Tensor>& gradients) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  const at::Tensor inverse = factor_.reciprocal();
  found_ = at::zeros_like(factor_);
  std::vector<at::Tensor> here;
  for (auto& gradient : gradients) {
    if (gradient.device() == factor_.device()) {
      here.push_back(gradient);
      continue;
    }
    at::Tensor found = found_.to(gradient.device());
    at::_amp_foreach_non_finite_check_and_unscale_({gradient}, found,
                                                   inverse.to(gradient.device()));
    at::maximum_out(found_, found_, found.to(factor_.device()));
  }
  at::_amp_foreach_non_finite_check_and_unscale_(here, found_, inverse);
}

void LossScale::adjust(const at::Tensor& found_inf) {
  at::_amp_update_scale_(factor_, updates_, found_inf, kGrowth, kBackoff,
                         settings_.growth_interval);
  factor_.clamp_max_(kLargest);
}

void LossScale::save(State& state) const {
  state[kFactor] = factor_;
  state[kUpdates] = updates_;
}

State LossScale::take(State& state) {
  State taken;
  for (const char* name : {kFactor, kUpdates}) {
    auto node = state.extract(name);
    if (!node) continue;
    if (!node.mapped().defined() || node.mapped().numel() != 1) {
      throw Error(fmt::format("the state does not fit the update: \"{}\" is not one number", name));
    }
    taken.insert(std::move(node));
  }
  return taken;
}

void LossScale::load(const State& taken) {
  const auto factor = taken.find(kFactor);
  const auto updates = taken.find(kUpdates);
  if (factor == taken.end() || updates == taken.end()) return;
  factor_.copy_(factor->second.reshape({}));
  updates_.copy_(updates->second.reshape({}));
}

}  // namespace stepop
