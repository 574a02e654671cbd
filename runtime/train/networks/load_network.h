#pragma once

#include <c10/core/Device.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/network.h"

namespace stepop {

/// Selects a network of a run, and its weights.
struct LoadNetworkOptions {
  std::string network = {};           ///< The name, if the run has several networks: `generator`.
  std::string checkpoint = "latest";  ///< For a run: `latest`, `best`, or a step, `700`.
  /// Whether to take the averages, where the checkpoint has them and the run evaluates them.
  bool takes_averages = true;
  c10::Device device = c10::kCPU;
};

/// Loads a trained network into your own program, in evaluation mode and without gradients: the
/// network in the checkpoint's config, with the checkpoint's weights. `path` is the folder of a
/// run, or a checkpoint. If the network's class is the run's own code, the program must contain the
/// class, with its registration. Throws Error, with the path, when the checkpoint is missing or
/// damaged, or has no such network; UsageError for a class that is missing in the program.
std::shared_ptr<torch::nn::Module> load_module(const std::string& path,
                                               const LoadNetworkOptions& options = {});

/// The same with the network's type: `load_network("logs/x")->forward(images)`, or
/// `load_network<Generator>(...)`. Throws Error when the network has another type.
template <class T = Network>
std::shared_ptr<T> load_network(const std::string& path, const LoadNetworkOptions& options = {}) {
  auto typed = std::dynamic_pointer_cast<T>(load_module(path, options));
  if (!typed) throw Error(fmt::format("{}: its network is of another type", path));
  return typed;
}

}  // namespace stepop
