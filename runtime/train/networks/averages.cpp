#include "runtime/train/networks/averages.h"

#include <ATen/ops/empty_like.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/network.h"

namespace stepop {
namespace {

/// The position of `tensor` in `list`, to which it is added if it is not there.
size_t place_in(std::vector<at::Tensor>& list, const at::Tensor& tensor) {
  const auto known = std::find_if(list.begin(), list.end(),
                                  [&](const auto& other) { return other.is_same(tensor); });
  const auto place = static_cast<size_t>(known - list.begin());
  if (known == list.end()) list.push_back(tensor);
  return place;
}

}  // namespace

void Averages::add(const std::string& name, std::shared_ptr<torch::nn::Module> network) {
  Averaged added{name, std::move(network), {}, {}};
  for (const auto& item : added.network->named_parameters()) {
    if (!item.value().is_floating_point()) continue;
    added.parameters.emplace_back(item.key(), place_in(parameters_, item.value()));
  }
  averages_.resize(parameters_.size());
  networks_.push_back(std::move(added));
}

void Averages::add_statistics(const std::string& name, const std::string& key,
                              const at::Tensor& buffer) {
  averaged(name).buffers.emplace_back(key, place_in(buffers_, buffer));
  statistics_.resize(buffers_.size());
}

size_t Averages::place_of_buffer(const at::Tensor& buffer) const {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [&](const auto& other) { return other.is_same(buffer); });
  return static_cast<size_t>(found - buffers_.begin());
}

/// A number with 8 or 11 significant bits would round small changes away.
at::TensorOptions Averages::options_of_average(const at::Tensor& parameter) const {
  const at::ScalarType type = parameter.scalar_type();
  const bool is_half = type == at::kBFloat16 || type == at::kHalf;
  return at::TensorOptions(is_half ? at::kFloat : type)
      .device(on_cpu_ ? at::Device(at::kCPU) : parameter.device());
}

std::vector<at::Tensor> Averages::weights() const {
  std::vector<at::Tensor> weights;
  weights.reserve(parameters_.size());
  for (const auto& parameter : parameters_) {
    weights.push_back(parameter.to(options_of_average(parameter)));  // no copy for the same
  }
  return weights;
}

void Averages::start_averages() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (averages_[i].defined()) continue;
    const at::Tensor weights = parameters_[i].detach();
    averages_[i] = weights.to(options_of_average(weights), /*non_blocking=*/false, /*copy=*/true);
  }
}

State Averages::state(const std::string& name) const {
  const Averaged& of = averaged(name);
  State state = tensors_of(*of.network);
  for (const auto& [key, place] : of.parameters) {
    if (!averages_[place].defined()) return {};
    state[key] = averages_[place];
  }
  for (const auto& [key, place] : of.buffers) {
    if (statistics_[place].defined()) state[key] = statistics_[place];
  }
  return state;
}

void Averages::load_state(const std::string& name, const State& state, bool has_statistics) {
  const Averaged& of = averaged(name);
  State restored;
  if (!state.empty()) {
    for (const auto& [key, tensor] : tensors_of(*of.network))
      restored[key] = at::empty_like(tensor);
    for (const auto& [key, place] : of.parameters) {
      const at::Tensor& parameter = parameters_[place];
      restored[key] = at::empty_like(parameter.detach(), options_of_average(parameter));
    }
    load_tensors(kind_ + "_" + name, restored, state);
  }
  for (const auto& [key, place] : of.parameters) {
    averages_[place] = state.empty() ? at::Tensor() : restored.at(key);
  }
  for (const auto& [key, place] : of.buffers) {
    statistics_[place] = state.empty() || !has_statistics ? at::Tensor() : restored.at(key);
  }
}

Averages::Averaged& Averages::averaged(const std::string& name) {
  const auto found = std::find_if(networks_.begin(), networks_.end(),
                                  [&](const auto& network) { return network.name == name; });
  if (found == networks_.end()) throw Error(fmt::format("no averages of the network \"{}\"", name));
  return *found;
}

const Averages::Averaged& Averages::averaged(const std::string& name) const {
  return const_cast<Averages*>(this)->averaged(name);
}

void use_memory(const at::Tensor& tensor, const at::Tensor& data) {
  tensor.set_data(data);
  tensor.unsafeGetTensorImpl()->bump_version();
}

AveragesGuard::AveragesGuard(const Averages* averages) {
  if (averages == nullptr || averages->are_in_networks_) return;
  // All calls that may throw come first.
  std::vector<at::Tensor> memory;
  const auto replace = [&](const std::vector<at::Tensor>& tensors,
                           const std::vector<at::Tensor>& values) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor value =
          values[i].defined() ? values[i].to(tensors[i].options()) : tensors[i].detach();
      memory.push_back(value.variable_data());
      replaced_.emplace_back(tensors[i], tensors[i].variable_data());
    }
  };
  replace(averages->parameters_, averages->averages_);
  replace(averages->buffers_, averages->statistics_);
  for (size_t i = 0; i < replaced_.size(); ++i) use_memory(replaced_[i].first, memory[i]);
  averages_ = averages;
  averages_->are_in_networks_ = true;
}

AveragesGuard::~AveragesGuard() {
  for (const auto& [tensor, own] : replaced_) use_memory(tensor, own);
  if (averages_ != nullptr) averages_->are_in_networks_ = false;
}

}  // namespace stepop
