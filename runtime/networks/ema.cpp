#include "runtime/networks/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/networks/network.h"

namespace stepop {
namespace {

/// A small change to a number of 8 or 11 significant bits is rounded away.
at::ScalarType type_of_average(const at::Tensor& parameter) {
  const at::ScalarType type = parameter.scalar_type();
  return type == at::kBFloat16 || type == at::kHalf ? at::kFloat : type;
}

void set_data(const at::Tensor& parameter, const at::Tensor& data) {
  parameter.set_data(data);
  parameter.unsafeGetTensorImpl()->bump_version();
}

}  // namespace

Ema::Ema(const Config& config, bool must_be_restored)
    : decay_(config, "decay", 0.999),
      warmup_(config.get("warmup", false)),
      must_be_restored_(must_be_restored) {
  decay_.at_least(0, config, "decay");
  if (decay_.at(0) >= 1) {
    throw config.error("decay", fmt::format("expected a number below 1, found {}", decay_.at(0)));
  }
}

void Ema::add(const std::string& name, std::shared_ptr<torch::nn::Module> network) {
  Averaged added{name, std::move(network), {}};
  for (const auto& item : added.network->named_parameters()) {
    if (!item.value().is_floating_point()) continue;
    const auto known = std::find_if(parameters_.begin(), parameters_.end(),
                                    [&](const auto& other) { return other.is_same(item.value()); });
    added.parameters.emplace_back(item.key(), known - parameters_.begin());
    if (known == parameters_.end()) parameters_.push_back(item.value());
  }
  averages_.resize(parameters_.size());
  networks_.push_back(std::move(added));
}

void Ema::start() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (averages_[i].defined()) continue;
    const at::Tensor weights = parameters_[i].detach();
    averages_[i] = weights.to(type_of_average(weights), /*non_blocking=*/false, /*copy=*/true);
  }
}

void Ema::update(int64_t global_step) {
  if (parameters_.empty()) return;  // PyTorch refuses an empty list
  const at::NoGradGuard no_grad;
  double decay = decay_.at(global_step);
  const auto steps = static_cast<double>(global_step);
  if (warmup_) decay = std::min(decay, (1 + steps) / (10 + steps));
  std::vector<at::Tensor> weights;
  weights.reserve(parameters_.size());
  for (const auto& parameter : parameters_) {
    weights.push_back(parameter.to(type_of_average(parameter)));  // itself when it has that type
  }
  at::_foreach_lerp_(averages_, weights, 1 - decay);
}

State Ema::state(const std::string& name) const {
  const Averaged& of = averaged(name);
  State state = tensors_of(*of.network);
  for (const auto& [key, position] : of.parameters) {
    if (!averages_[position].defined()) return {};
    state[key] = averages_[position];
  }
  return state;
}

void Ema::load_state(const std::string& name, const State& state) {
  const Averaged& of = averaged(name);
  if (state.empty() && must_be_restored_) {
    throw Error(
        fmt::format("no averages of the network \"{}\": the checkpoint was saved without ema. Use "
                    "eval_weights: model",
                    name));
  }
  State restored;
  if (!state.empty()) {
    for (const auto& [key, tensor] : tensors_of(*of.network))
      restored[key] = at::empty_like(tensor);
    for (const auto& [key, position] : of.parameters) {
      const at::Tensor& parameter = parameters_[position];
      restored[key] = at::empty_like(parameter.detach(), type_of_average(parameter));
    }
    load_tensors("ema_" + name, restored, state);
  }
  for (const auto& [key, position] : of.parameters) {
    averages_[position] = state.empty() ? at::Tensor() : restored.at(key);
  }
}

const Ema::Averaged& Ema::averaged(const std::string& name) const {
  const auto found = std::find_if(networks_.begin(), networks_.end(),
                                  [&](const auto& network) { return network.name == name; });
  if (found == networks_.end()) throw Error(fmt::format("no averages of the network \"{}\"", name));
  return *found;
}

EmaGuard::EmaGuard(const Ema* ema) : ema_(ema) {
  if (ema_ == nullptr) return;
  std::vector<at::Tensor> averages;
  for (size_t i = 0; i < ema_->parameters_.size(); ++i) {
    const at::Tensor& parameter = ema_->parameters_[i];
    const at::Tensor& average = ema_->averages_[i];
    averages.push_back(average.defined() ? average.to(parameter.scalar_type()) : parameter);
    weights_.push_back(parameter.variable_data());
  }
  for (size_t i = 0; i < averages.size(); ++i) {
    set_data(ema_->parameters_[i], averages[i].variable_data());
  }
}

EmaGuard::~EmaGuard() {
  for (size_t i = 0; i < weights_.size(); ++i) set_data(ema_->parameters_[i], weights_[i]);
}

}  // namespace stepop
