#include "runtime/train/networks/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/core/base/error.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/optim/optimizer.h"

namespace stepop {

namespace {

/// Copying weights from a device takes long.
constexpr int64_t kEveryOnCpu = 10;

}  // namespace

Ema::Ema(const Config& config, bool must_be_restored)
    : Averages("ema", own_key<bool>(config, "on_cpu")),
      decay_(Scheduled(config, "decay", own_default("ema/decay").as_float())),
      warmup_(own_key<bool>(config, "warmup")),
      every_(own_key<bool>(config, "on_cpu") ? kEveryOnCpu : 1),
      must_be_restored_(must_be_restored) {
  decay_->at_least(0, config, "decay");
  if (decay_->at(0) >= 1) {
    throw config.error("decay", fmt::format("expected a number below 1, found {}", decay_->at(0)));
  }
}

double Ema::decay_at(int64_t global_step) const {
  const auto steps = static_cast<double>(global_step);
  const double decay = decay_->at(global_step);
  return warmup_ ? std::min(decay, (1 + steps) / (10 + steps)) : decay;
}

double Ema::decay_until(int64_t global_step) const {
  double decay = 1;
  for (int64_t step = global_step + 1 - every_; step <= global_step; ++step)
    decay *= decay_at(step);
  return decay;
}

bool Ema::averages_within(int64_t steps) const {
  if (!optimizers_.empty()) return true;
  constexpr int64_t kMostLooks = 10'000;
  const int64_t last = averaged_steps(steps) - 1;
  for (int64_t step = last; step >= std::max<int64_t>(last - kMostLooks, 0); --step) {
    const double decay = decay_at(step);
    if (decay > 0 && decay < 1) return true;
  }
  return false;
}

void Ema::update(int64_t global_step) {
  if (parameters_.empty()) return;  // PyTorch rejects an empty list
  const at::NoGradGuard no_grad;
  if (!optimizers_.empty()) return take_averages();
  if ((global_step + 1) % every_ != 0) return;
  at::_foreach_lerp_(averages_, weights(), 1 - decay_until(global_step));
}

void Ema::take_averages() {
  std::map<const void*, at::Tensor> taken;
  for (const Optimizer* optimizer : optimizers_) {
    for (const auto& [parameter, average] : optimizer->averages()) {
      taken[parameter.unsafeGetTensorImpl()] = average;
    }
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto found = taken.find(parameters_[i].unsafeGetTensorImpl());
    averages_[i].copy_(found == taken.end() ? parameters_[i] : found->second);
  }
}

void Ema::load_state(const std::string& name, const State& state) {
  if (state.empty() && must_be_restored_) {
    throw Error(
        fmt::format("no averages of the network \"{}\": the checkpoint was saved without ema. Use "
                    "eval_weights: model",
                    name));
  }
  Averages::load_state(name, state);
}

}  // namespace stepop
