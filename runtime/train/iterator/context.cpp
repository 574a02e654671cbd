#include "runtime/train/iterator/context.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <typeinfo>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/dataset.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/network_ports.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

const at::Tensor& only_tensor(const std::string& name, const State& state) {
  const auto found = state.find("value");
  if (found == state.end())
    throw Error(fmt::format("{}.value: missing from the checkpoint. {}", name, kHowToFit));
  return found->second;
}

template <class T>
void track_number(const Context& context, const std::string& name, T& value, at::ScalarType type) {
  context.tracker.add(
      name,
      [&value, type] {
        return State{{"value", at::scalar_tensor(value, at::TensorOptions().dtype(type))}};
      },
      [&value, name](const State& state) {
        const at::Tensor& saved = only_tensor(name, state);
        if (saved.numel() != 1) {
          throw Error(fmt::format("{}: expected one number, found a tensor [{}]", name,
                                  fmt::join(saved.sizes(), ", ")));
        }
        value = saved.item<T>();
      });
}

/// The name under which the update of the config at `path` is tracked.
std::string tracked_name(std::string path) {
  std::replace(path.begin(), path.end(), '/', '_');
  return path;
}

Error nothing_to_train(const std::string& path, const std::vector<std::string>& names,
                       const Networks& networks) {
  const bool has_parameters = std::any_of(names.begin(), names.end(), [&](const auto& name) {
    return !networks.get(name)->parameters().empty();
  });
  const std::string which =
      fmt::format("network{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ", "));
  if (has_parameters) {
    return Error(fmt::format("{}: nothing to train: no parameter of the {} requires a gradient",
                             path, which));
  }
  return Error(
      fmt::format("{}: nothing to train: the {} {} no parameters. The constructor of a network "
                  "registers each layer: {} (torch.jit.freeze makes constants of parameters)",
                  path, which, names.size() == 1 ? "has" : "have", kRegisterModule));
}

}  // namespace

Update& Context::update(const std::string& path,
                        const std::vector<std::string>& network_names) const {
  NamedParameters parameters = networks.parameters(network_names);
  if (parameters.empty()) throw nothing_to_train(path, network_names, networks);
  return update_of(path, std::move(parameters));
}

Update& Context::update_of(const std::string& path, NamedParameters parameters) const {
  return update_from(path, config.at(path), std::move(parameters));
}

Update& Context::update_from(const std::string& path, const Config& part,
                             NamedParameters parameters) const {
  if (updates.contains(tracked_name(path))) {
    throw Error(
        fmt::format("the update \"{}\" is made twice; give the second a part of the config "
                    "of its own, such as \"{}_2\"",
                    path, path));
  }
  auto made = std::make_unique<Update>(part, std::move(parameters), clock, on_nan);
  if (precision == Precision::kFloat16) made->scale_losses(LossScale::read(config.root()));
  made->share(world, own_key<bool>(config.root(), "distributed/shard_optimizer"));
  Update* update = made.get();
  const std::string name = tracked_name(path);
  tracker.add(
      name, [update] { return update->state(); },
      [update](const State& state) { update->load_state(state); });
  updates.set(name, std::move(made));
  return *update;
}

void Context::train_by_hand(const std::vector<std::string>& network_names) const {
  for (const auto& name : network_names) networks.set_trained_by_hand(name);
}

/// The runtime must not track this name by itself.
void Context::check_name(const std::string& name) const {
  if (tracker.has_prefix()) return;
  const auto names = networks.names();
  const auto is_network = [&](std::string_view text) {
    return std::find(names.begin(), names.end(), text) != names.end();
  };
  const std::string_view text = name;
  const bool is_average =
      (text.starts_with("ema_") || text.starts_with("swa_")) && is_network(text.substr(4));
  const char* is = is_network(text)                 ? "the network"
                   : updates.contains(text)         ? "the update"
                   : is_average                     ? "the averages"
                   : text == "random"               ? "the random generators"
                   : text == "train_means"          ? "what train ops returned"
                   : text == "stop_when"            ? "the best value of the metric"
                   : text == "schedules"            ? "schedules"
                   : text.starts_with(kHooksPrefix) ? "hooks"
                                                    : nullptr;
  if (is == nullptr) return;
  throw Error(
      fmt::format("\"{}\" is the name under which the runtime itself tracks {}; give yours "
                  "another name",
                  name, is));
}

void Context::track(const std::string& name, at::Tensor& value) const {
  check_name(name);
  const bool is_made_later = !value.defined();
  tracker.add(
      name,
      [&value] {
        return value.defined() ? State{{"value", value.detach()}} : State{};
      },
      [&value, name, is_made_later, device = device](const State& state) {
        if (is_made_later && !state.contains("value")) {
          value.reset();
          return;
        }
        const at::Tensor& saved = only_tensor(name, state);
        if (is_made_later) {
          value = saved.to(device, saved.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
          return;
        }
        if (value.sizes() != saved.sizes() || value.scalar_type() != saved.scalar_type()) {
          throw Error(fmt::format("{}: {} in the checkpoint, {} here. {}", name,
                                  describe_tensor(saved), describe_tensor(value), kHowToFit));
        }
        const at::NoGradGuard no_grad;
        value.detach().copy_(saved);
      });
}

void Context::track(const std::string& name, int64_t& value) const {
  check_name(name);
  track_number(*this, name, value, at::kLong);
}

void Context::track(const std::string& name, double& value) const {
  check_name(name);
  track_number(*this, name, value, at::kDouble);
}

void Context::track(const std::string& name, torch::nn::Module& module) const {
  check_name(name);
  module.to(device);
  tracker.add_network(
      name, [&module] { return tensors_of(module); },
      [&module, name](const State& state) { load_tensors(name, tensors_of(module), state); });
  tracker.add_module(module);
}

void Context::track(const std::string& name, Tracker::Save save, Tracker::Load load) const {
  check_name(name);
  tracker.add(name, std::move(save), std::move(load));
}

void Context::wrong_network_type(std::string_view name, const char* type) const {
  const torch::nn::Module* network = networks.get(name).get();
  const bool has_several = dynamic_cast<const MultiNetwork*>(network) != nullptr;
  const auto* known = dynamic_cast<const NetworkPorts*>(network);
  const bool takes_one = std::string_view(type) == typeid(Network).name();
  throw Error(
      fmt::format("the iterator takes the network \"{}\" as a {}, which the model of the "
                  "config is not{}",
                  name, demangled(type),
                  known != nullptr && takes_one ? ": " + known->ports()
                  : has_several ? ": it has several inputs or results (MultiNetwork); "
                                  "choose a model of that type"
                                : "; choose a model of that type"));
}

BatchSlice Context::slice() const { return {rank, world_size}; }

const Dataset& Context::dataset(const std::string& split) const { return splits.dataset(split); }

const std::shared_ptr<torch::nn::Module>& Context::network_module(std::string_view name) const {
  return networks.get(name);
}

}  // namespace stepop
