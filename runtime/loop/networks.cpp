#include "runtime/loop/networks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include "runtime/log/number_text.h"
#include "runtime/network.h"

namespace stepop {

ModelRegistry& models() {
  static ModelRegistry registry("model");
  return registry;
}

namespace {

State tensors_of(const torch::nn::Module& module) {
  State state;
  for (const auto& item : module.named_parameters()) state.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace(item.key(), item.value());
  return state;
}

/// Copies `state` into the network's own tensors; all is checked before anything is changed.
void load_tensors(const std::string& name, const torch::nn::Module& module, const State& state) {
  const State own = tensors_of(module);
  std::string problems;
  for (const auto& [key, tensor] : own) {
    const auto found = state.find(key);
    if (found == state.end()) {
      problems += fmt::format("\n  {}.{}: missing from the checkpoint", name, key);
    } else if (found->second.sizes() != tensor.sizes()) {
      problems +=
          fmt::format("\n  {}.{}: [{}] in the checkpoint, [{}] in the network", name, key,
                      fmt::join(found->second.sizes(), ", "), fmt::join(tensor.sizes(), ", "));
    }
  }
  for (const auto& [key, tensor] : state) {
    if (!own.contains(key)) {
      problems += fmt::format("\n  {}.{}: in the checkpoint only", name, key);
    }
  }
  if (!problems.empty()) {
    throw Error(fmt::format("the checkpoint is of another architecture than the network \"{}\":{}",
                            name, problems));
  }
  const at::NoGradGuard no_grad;
  for (const auto& [key, tensor] : own) at::Tensor(tensor).copy_(state.at(key));
}

}  // namespace

Networks::Networks(const Config& config, const c10::Device& device, Tracker& tracker) {
  const bool has_model = config.has("model");
  if (config.has("networks")) {
    if (has_model) throw config.error("networks", "give either model or networks, found both");
    for (const auto& name : config.at("networks").keys()) {
      add(name, config, "networks/" + name, device, tracker);
    }
  } else if (has_model) {
    add("model", config, "model", device, tracker);
  }
}

void Networks::add(const std::string& name, const Config& config, std::string_view path,
                   const c10::Device& device, Tracker& tracker) {
  auto network = models().build(config, path);
  network->to(device);
  tracker.add(
      name, [network] { return tensors_of(*network); },
      [name, network](const State& state) { load_tensors(name, *network, state); });
  class_names_.set(name, read_component(config, path).name);
  networks_.set(name, std::move(network));
}

const std::shared_ptr<torch::nn::Module>& Networks::get(std::string_view name) const {
  if (const auto* found = networks_.find(name)) return *found;
  throw Error(
      fmt::format("the iterator asks for the network \"{}\", which the config does not "
                  "give; there are: {}",
                  name, networks_.key_list()));
}

std::vector<std::string> Networks::names() const {
  std::vector<std::string> names;
  for (const auto& [name, network] : networks_) names.push_back(name);
  return names;
}

std::vector<std::string> Networks::class_names() const {
  std::vector<std::string> names;
  for (const auto& [name, class_name] : class_names_) names.push_back(class_name);
  return names;
}

void Networks::set_training(bool on) {
  for (auto& [name, network] : networks_) {
    if (network->is_training() != on) network->train(on);
  }
}

NamedParameters Networks::parameters(const std::vector<std::string>& names) const {
  NamedParameters parameters;
  for (const auto& name : names) {
    for (const auto& item : get(name)->named_parameters()) {
      if (!item.value().requires_grad()) continue;
      parameters.emplace_back(names.size() > 1 ? name + "." + item.key() : item.key(),
                              item.value());
    }
  }
  return parameters;
}

State Networks::copy_buffers() const {
  State state;
  for (const auto& [name, network] : networks_) {
    for (const auto& item : network->named_buffers()) {
      state.emplace(name + "." + item.key(), item.value().clone());
    }
  }
  return state;
}

void Networks::restore_buffers(const State& buffers) const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, network] : networks_) {
    for (auto& item : network->named_buffers()) {
      item.value().copy_(buffers.at(name + "." + item.key()));
    }
  }
}

std::vector<std::string> Networks::descriptions() const {
  std::vector<std::string> texts;
  for (const auto& [name, network] : networks_) {
    int64_t count = 0;
    for (const auto& tensor : network->parameters()) count += tensor.numel();
    texts.push_back(
        fmt::format("{}: {}, {} parameters", name, class_names_.at(name), with_thousands(count)));
  }
  return texts;
}

}  // namespace stepop
