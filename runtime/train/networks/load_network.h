#pragma once

#include <c10/core/Device.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/network.h"

namespace stepop {

/// Which network of a run, and with which weights.
struct LoadNetworkOptions {
  std::string network = {};           ///< Of several the name: `generator`.
  std::string checkpoint = "latest";  ///< Of a run: `latest`, `best`, or a step, `700`.
  /// Its averages, where the checkpoint has them and the run evaluates them.
  bool takes_averages = true;
  c10::Device device = c10::kCPU;
};

/// A trained network for a program of one's own, in evaluation mode, its parameters without
/// gradients: what the config in the checkpoint names, with the weights that are there. `path` is
/// the folder of a run or a checkpoint. A class of the run's own code must be in the program, where
/// it registers itself. Throws Error, with the path, when there is no such checkpoint, when it is
/// damaged, or has no such network; UsageError for a class that the program does not have.
std::shared_ptr<torch::nn::Module> load_module(const std::string& path,
                                               const LoadNetworkOptions& options = {});

/// The same as what it is: `load_network("logs/x")->forward(images)`, or
/// `load_network<Generator>(...)`. Throws Error when it is of another type.
template <class T = Network>
std::shared_ptr<T> load_network(const std::string& path, const LoadNetworkOptions& options = {}) {
  auto typed = std::dynamic_pointer_cast<T>(load_module(path, options));
  if (!typed) throw Error(fmt::format("{}: its network is of another type", path));
  return typed;
}

}  // namespace stepop
