#include "runtime/train/step/uncaptured.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include "runtime/core/base/error.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/step/device_graph.h"

namespace stepop {

void check_captures(const Context& context) {
  const auto refused = [&](const std::string& why) {
    return context.config.error(kCudaGraph, why + "; leave cuda_graph out");
  };
  if (context.device.is_cpu()) {
    throw refused("graphs are of a GPU, and the device of this run is the CPU");
  }
  if (make_device_graph(context.device.type()) == nullptr) {
    throw refused(fmt::format("neither this LibTorch nor this build has graphs for {}",
                              context.device.str()));
  }
  if (!context.world.is_alone()) {
    throw refused("a graph cannot hold the sums of gradients over several processes");
  }
  if (own_key<int64_t>(context.config, "accumulate") > 1) {
    throw refused("with accumulate a batch's weight in its step is not that of the next step");
  }
  if (own_key<std::string>(context.config, "on_out_of_memory") == "split") {
    throw refused("on_out_of_memory: split changes the batches of a step");
  }
  if (!context.networks.checkpoint_modules().empty()) {
    throw refused("checkpoint_modules puts random generators back, which a graph cannot");
  }
  for (const auto& name : context.networks.names()) {
    if (!context.networks.is_trained_by_hand(name)) continue;
    throw refused(fmt::format(
        "the network \"{}\" is trained without an update of the runtime, whose numbers of the host "
        "a graph would repeat",
        name));
  }
}

State tracked_places(const Context& context) {
  State places;
  for (const auto& name : context.tracker.names()) {
    if (context.updates.contains(name) || name.starts_with(kHooksPrefix)) continue;
    for (const auto& [key, tensor] : context.tracker.save(name)) {
      const bool is_of_device = name == kRandomState && key != "cpu";
      if (!tensor.defined() || is_of_device) continue;
      places.emplace(name + "." + key, tensor.is_cpu() ? tensor.clone() : tensor);
    }
  }
  return places;
}

std::string uncaptured_change(const State& before, const State& after) {
  for (const auto& [name, tensor] : after) {
    const auto found = before.find(name);
    const bool is_same =
        found != before.end() &&
        (tensor.is_cpu() ? at::equal(tensor, found->second) : tensor.is_alias_of(found->second));
    if (is_same) continue;
    if (name.starts_with(kRandomState)) {
      return "it draws random numbers of the CPU, which a graph would repeat: draw them on the "
             "device, as in at::rand({n}, image.options())";
    }
    return fmt::format(
        "it changes \"{}\" {}, and a graph repeats what the device does in the same memory: keep "
        "it "
        "in a tensor there that changes in place, as in count_.add_(1), mean_.copy_(...)",
        name, tensor.is_cpu() ? "on the host" : "by a new tensor");
  }
  return {};
}

}  // namespace stepop
