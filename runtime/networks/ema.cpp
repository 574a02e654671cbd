#include "runtime/networks/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace stepop {

Ema::Ema(const Config& config, bool must_be_restored)
    : Averages("ema"),
      decay_(config, "decay", 0.999),
      warmup_(config.get("warmup", false)),
      must_be_restored_(must_be_restored) {
  decay_.at_least(0, config, "decay");
  if (decay_.at(0) >= 1) {
    throw config.error("decay", fmt::format("expected a number below 1, found {}", decay_.at(0)));
  }
}

void Ema::update(int64_t global_step) {
  if (parameters_.empty()) return;  // PyTorch refuses an empty list
  const at::NoGradGuard no_grad;
  double decay = decay_.at(global_step);
  const auto steps = static_cast<double>(global_step);
  if (warmup_) decay = std::min(decay, (1 + steps) / (10 + steps));
  at::_foreach_lerp_(averages_, weights(), 1 - decay);
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
