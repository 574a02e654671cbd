#include "runtime/train/networks/load_network.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <filesystem>

#include "runtime/core/config/references.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/networks.h"

namespace stepop {
namespace {

std::string checkpoint_of(const std::string& path, const std::string& checkpoint) {
  if (!std::filesystem::is_directory(path)) return path;
  const CheckpointFolder folder(path + "/train/checkpoints");
  if (checkpoint != "latest") {
    if (const auto found = folder.find(checkpoint)) return *found;
    return checkpoint;
  }
  std::vector<std::string> warnings;
  if (const auto newest = folder.newest_whole(warnings)) return *newest;
  throw Error(fmt::format("{}: no run with checkpoints is in this folder", path));
}

Config config_of(const Checkpoint& checkpoint, const std::string& file) {
  Value tree = parse_yaml(checkpoint.config, {file, 0}, /*keep_line=*/true);
  resolve_references(tree);  // only doubled braces are left
  return Config(std::move(tree));
}

std::string name_of(const Networks& networks, const LoadNetworkOptions& options,
                    const std::string& file) {
  const auto names = networks.names();
  if (!options.network.empty()) return options.network;
  if (names.size() == 1) return names[0];
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  throw Error(fmt::format("{}: it has the networks {}: name one", file, list));
}

/// Copies the tensors of `file` whose names begin with `prefix` into the network's tensors.
void take(const State& own, const State& file, const std::string& prefix) {
  for (const auto& [name, tensor] : own) {
    const auto found = file.find(prefix + name);
    if (found == file.end()) continue;  // the averages may not exist yet
    tensor.detach().copy_(found->second);
  }
}

}  // namespace

std::shared_ptr<torch::nn::Module> load_module(const std::string& path,
                                               const LoadNetworkOptions& options) {
  const std::string file = checkpoint_of(path, options.checkpoint);
  const Checkpoint checkpoint = load_checkpoint(file);
  const Config config = config_of(checkpoint, file);
  Tracker tracker;
  const Networks networks(config, options.device, tracker);
  const std::string name = name_of(networks, options, file);
  const auto network = networks.get(name);
  const at::NoGradGuard no_grad;
  try {
    tracker.load(name, checkpoint.tensors);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file, error.what()));
  }
  const auto weights = own_key<std::string>(config, "eval_weights");
  if (options.takes_averages && weights != "model") {  // `ema_model.`, `swa_model.`
    take(networks.tensors(name), checkpoint.tensors, fmt::format("{}_{}.", weights, name));
  }
  network->eval();
  for (auto& parameter : network->parameters()) parameter.requires_grad_(false);
  return network;
}

}  // namespace stepop
