#include "runtime/train/networks/networks.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <exception>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/ema.h"
#include "runtime/train/networks/float32_modules.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/swa.h"
#include "runtime/train/networks/sync_batch_norm.h"
#include "runtime/train/optim/update.h"

namespace stepop {

namespace {

/// Whether `update` trains a parameter of the network.
bool trains(const Update& update, const torch::nn::Module& network) {
  const auto& trained = update.optimizer().parameters();
  const auto parameters = network.parameters();
  return std::any_of(parameters.begin(), parameters.end(), [&](const at::Tensor& parameter) {
    return std::any_of(trained.begin(), trained.end(),
                       [&](const auto& entry) { return entry.second.is_same(parameter); });
  });
}

std::vector<const Optimizer*> optimizers_with_averages(const Networks::Updates& updates) {
  std::vector<const Optimizer*> optimizers;
  for (const auto& [name, update] : updates) {
    if (update->optimizer().has_averages()) optimizers.push_back(&update->optimizer());
  }
  return optimizers;
}

/// Reads a network: its name, its `class`, or another key that names classes.
Component read_network(const Config& config, std::string_view path) {
  const Config params = config.at(path);
  const Value* value = config.peek(path);
  if (value != nullptr && value->is_map() && !value->as_map().contains("class")) {
    for (const auto& key : other_class_keys()) {
      if (params.has(key)) return {params.get<std::string>(key), params};
    }
  }
  return read_component(config, path);
}

/// Builds the network at `path` of `config`, on `device`. Throws Error with the place when its
/// constructor throws.
std::shared_ptr<torch::nn::Module> build_on(const c10::Device& device, const Component& component,
                                            const Config& config, std::string_view path) {
  const std::string& class_name = component.name;
  const auto failed = [&](const std::string& text) {
    return config.error(path, class_name + ": " + text);
  };
  try {
    auto network = models().factory(class_name, config, path)(component.params);
    std::vector<std::string> without_values;
    for (const auto& [name, tensor] : tensors_of(*network)) {
      if (tensor.is_meta() && !device.is_meta()) without_values.push_back(name);
    }
    if (!without_values.empty()) {
      throw failed(
          fmt::format("on the device meta, which holds no values: {}. The constructor has to make "
                      "each layer with values; the runtime moves the network to {}",
                      list_text(without_values), device.str()));
    }
    network->to(device);
    return network;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(failed(error_text(error)).what());  // exit code 1, to which places are added
  }
}

/// Gives the weights of convolutions the memory layout of the batches.
void put_channels_last(const torch::nn::Module& network) {
  for (const auto& parameter : network.parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
}

}  // namespace

Networks::Networks(const Config& config, const c10::Device& device, Tracker& tracker) {
  replace_normalization();
  const bool has_model = config.has("model");
  if (config.has("networks")) {
    if (has_model) throw config.error("networks", "give either model or networks, found both");
    for (const auto& name : config.at("networks").keys()) {
      add(name, config, "networks/" + name, device, tracker);
    }
  } else if (has_model) {
    add("model", config, "model", device, tracker);
  }
  const std::vector<ModulePattern::Network> all(networks_.begin(), networks_.end());
  checkpoint_modules_ = std::make_unique<CheckpointModules>(config, all);
  float32_modules_ = std::make_unique<Float32Modules>(config, device, all);
}

Networks::~Networks() = default;

void Networks::add(const std::string& name, const Config& config, std::string_view path,
                   const c10::Device& device, Tracker& tracker) {
  const Component component = read_network(config, path);
  const std::string& class_name = component.name;
  auto network = build_on(device, component, config, path);
  if (own_key<bool>(config, "channels_last")) put_channels_last(*network);
  tracker.add_network(
      name, [network] { return tensors_of(*network); },
      [name, network](const State& state) { load_tensors(name, tensors_of(*network), state); });
  class_names_.set(name, class_name);
  networks_.set(name, std::move(network));
}

const std::shared_ptr<torch::nn::Module>& Networks::get(std::string_view name) const {
  if (const auto* found = networks_.find(name)) return *found;
  throw Error(
      fmt::format("the iterator asks for the network \"{}\", which the config does not "
                  "give; there are: {}",
                  name, networks_.key_list()));
}

void Networks::set_trained_by_hand(std::string_view name) {
  get(name);  // throws for an unknown name
  trained_by_hand_.emplace(name);
}

bool Networks::is_trained_by_hand(std::string_view name) const {
  return trained_by_hand_.contains(name);
}

State Networks::tensors(std::string_view name) const { return tensors_of(*get(name)); }

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

void Networks::add_averages(const Config& config, const Updates& updates, Tracker& tracker,
                            bool train) {
  const auto optimizers = optimizers_with_averages(updates);
  if (!optimizers.empty()) {
    if (config.has("ema")) {
      throw config.error("ema", "the optimizer has averages of its own: leave ema out");
    }
    config.set_default("eval_weights", Value("ema"));
  }
  const auto weights = own_key<std::string>(config, "eval_weights");
  const auto has = [&](const std::string& kind, const char* example) {
    if (!config.has(kind)) {
      if (weights != kind) return false;
      throw config.error("eval_weights",
                         fmt::format("there are no averages: add {}: {}", kind, example));
    }
    if (config.peek(kind)->is_map()) return true;
    throw config.error(kind, fmt::format("expected a map such as {}, found {}", example,
                                         config.peek(kind)->describe()));
  };
  if (!optimizers.empty() || has("ema", "{decay: 0.999}")) {
    const bool must_be_restored = weights == "ema" && !train;
    ema_ = optimizers.empty() ? std::make_unique<Ema>(config.at("ema"), must_be_restored)
                              : std::make_unique<Ema>(optimizers, must_be_restored);
    for (const auto& name : averaged_networks(config, "ema", updates)) {
      ema_->add(name, get(name));
      tracker.add_network(
          "ema_" + name, [this, name] { return ema_->state(name); },
          [this, name](const State& state) { ema_->load_state(name, state); });
    }
  }
  if (has("swa", "{from: 5e, every: 1e}")) {
    swa_ = std::make_unique<Swa>(config.at("swa"), weights == "swa" && !train);
    tracker.add(
        "swa", [this] { return swa_->counts(); },
        [this](const State& state) { swa_->load_counts(state); });
    for (const auto& name : averaged_networks(config, "swa", updates)) {
      swa_->add(name, get(name));
      tracker.add_network(
          "swa_" + name, [this, name] { return swa_->state(name); },
          [this, name](const State& state) { swa_->load_state(name, state); });
    }
  }
  if (weights == "ema") evaluated_ = ema_.get();
  if (weights == "swa") evaluated_ = swa_.get();
}

std::vector<std::string> Networks::averaged_networks(const Config& config, const std::string& kind,
                                                     const Updates& updates) const {
  std::vector<std::string> averaged;
  const std::string path = kind + "/networks";
  if (config.has(path)) {
    averaged = config.get<std::vector<std::string>>(path);
    for (size_t i = 0; i < averaged.size(); ++i) {
      if (networks_.contains(averaged[i])) continue;
      throw config.error(
          fmt::format("{}/{}", path, i),
          fmt::format("no network \"{}\"; there are: {}", averaged[i], networks_.key_list()));
    }
  } else {
    for (const auto& [name, network] : networks_) {
      // Without `ema` in the config, the averages are an optimizer's.
      const bool are_of_optimizer = !config.has(kind);
      const bool is_trained = std::any_of(updates.begin(), updates.end(), [&](const auto& entry) {
        return trains(*entry.second, *network) &&
               (!are_of_optimizer || entry.second->optimizer().has_averages());
      });
      if (is_trained) averaged.push_back(name);
    }
  }
  if (averaged.empty()) throw config.error(kind, "no network is trained that could be averaged");
  return averaged;
}

void Networks::start_averages() {
  if (ema_) ema_->start();
}

void Networks::update_averages(int64_t global_step, bool takes_snapshot) {
  if (ema_) ema_->update(global_step);
  if (swa_ && takes_snapshot) swa_->update();
}

AveragesGuard Networks::evaluation_weights() const { return AveragesGuard(evaluated_); }

AveragesGuard Networks::averaged_weights() const {
  return AveragesGuard(ema_ ? static_cast<const Averages*>(ema_.get()) : swa_.get());
}

Swa* Networks::averages_to_measure() const {
  return swa_ && evaluated_ == swa_.get() && swa_->is_stale() ? swa_.get() : nullptr;
}

void Networks::set_training(bool on) {
  for (auto& [name, network] : networks_) {
    if (network->is_training() != on) network->train(on);
  }
}

NamedParameters Networks::parameters(const std::vector<std::string>& names) const {
  NamedParameters parameters;
  parameters.networks = names;
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
    std::set<const void*> seen;  // a tied tensor has several names
    for (const auto& tensor : network->parameters()) {
      if (seen.insert(tensor.unsafeGetTensorImpl()).second) count += tensor.numel();
    }
    texts.push_back(
        fmt::format("{}: {}, {}", name, class_names_.at(name), counted(count, "parameter")));
  }
  return texts;
}

std::vector<std::string> Networks::warnings() const {
  std::vector<std::string> texts;
  for (const auto& [name, network] : networks_) {
    const auto* one = dynamic_cast<const Network*>(network.get());
    const auto* several = dynamic_cast<const MultiNetwork*>(network.get());
    const std::string text = one != nullptr       ? one->warning()
                             : several != nullptr ? several->warning()
                                                  : "";
    if (!text.empty()) texts.push_back(fmt::format("{}: {}", name, text));
  }
  for (const auto& name : swa_ ? swa_->unmeasured() : std::vector<std::string>()) {
    texts.push_back(fmt::format(
        "swa: the batch normalization of {} is part of a file of Python: its statistics are those "
        "of the training, and are not measured for the averages",
        name));
  }
  return texts;
}

int64_t Networks::averaged_steps(int64_t steps) const {
  return ema_ ? ema_->averaged_steps(steps) : steps;
}

bool Networks::averages_within(int64_t steps) const {
  return !ema_ || ema_->averages_within(steps);
}

}  // namespace stepop
