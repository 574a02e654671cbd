#include "runtime/loop/checks/contract.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/base/text.h"

namespace stepop {
namespace {

using Tensors = std::set<const void*>;

const void* identity(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

Tensors trained_tensors(const Context& context) {
  Tensors trained;
  for (const auto& [name, update] : context.updates) {
    for (const auto& [parameter, tensor] : update->optimizer().parameters()) {
      trained.insert(identity(tensor));
    }
  }
  return trained;
}

Tensors network_tensors(const Context& context) {
  Tensors tensors;
  for (const auto& name : context.networks.names()) {
    for (const auto& [key, tensor] : context.networks.tensors(name)) {
      tensors.insert(identity(tensor));
    }
  }
  return tensors;
}

/// What is tracked besides networks and updates.
std::vector<at::Tensor> tracked_values(const Context& context) {
  const auto networks = context.networks.names();
  std::vector<at::Tensor> values;
  for (const auto& name : context.tracker.names()) {
    const bool is_network = std::find(networks.begin(), networks.end(), name) != networks.end();
    if (is_network || context.updates.contains(name)) continue;
    for (const auto& [key, tensor] : context.tracker.save(name)) values.push_back(tensor);
  }
  return values;
}

/// Who trains the other parameters, if anybody does: `; "optimizer" holds 3 of its 4`.
std::string others_text(const Context& context, const NamedParameters& parameters) {
  std::string text;
  for (const auto& [name, update] : context.updates) {
    Tensors held;
    for (const auto& [key, tensor] : update->optimizer().parameters())
      held.insert(identity(tensor));
    const auto count = std::count_if(parameters.begin(), parameters.end(), [&](const auto& entry) {
      return held.contains(identity(entry.second));
    });
    if (count > 0)
      text += fmt::format("{}\"{}\" holds {}", text.empty() ? "; " : ", ", name, count);
  }
  return text.empty() ? "" : fmt::format("{} of its {}", text, parameters.size());
}

/// Whether it is the tensor itself or a copy of it.
bool holds(const at::Tensor& value, const at::Tensor& tensor) {
  if (!value.defined() || value.sizes() != tensor.sizes()) return false;
  if (value.is_same(tensor) || value.is_alias_of(tensor)) return true;
  return at::equal(value.to(tensor.options()), tensor.detach());
}

}  // namespace

void check_devices(const Context& context) {
  for (const auto& name : context.networks.names()) {
    for (const auto& [key, tensor] : context.networks.tensors(name)) {
      if (tensor.device().type() == context.device.type()) continue;
      throw Error(fmt::format(
          "{} of the network \"{}\" is on {}, the run on {}: the runtime moves networks "
          "before it builds the iterator; what is made later has to be made there, with "
          "at::TensorOptions(context.device)",
          key, name, tensor.device().str(), context.device.str()));
    }
  }
}

void check_all_trained(const Context& context) {
  const Tensors trained = trained_tensors(context);
  for (const auto& name : context.networks.names()) {
    if (context.networks.is_trained_by_hand(name)) continue;
    const NamedParameters parameters = context.networks.parameters({name});
    std::vector<std::string> left;
    for (const auto& [key, tensor] : parameters) {
      if (!trained.contains(identity(tensor))) left.push_back(key);
    }
    if (left.empty()) continue;
    const bool is_whole = left.size() == parameters.size() && name != "model";
    throw Error(fmt::format(
        "no optimizer holds parameters of the network \"{}\" that require gradients: {}{}\n"
        "  to train them: context.update(\"{}\", {{\"{}\"}})\n"
        "  to keep them as they are: for (auto& parameter : network->parameters()) "
        "parameter.requires_grad_(false)\n"
        "  to train them by an optimizer that is no Update: context.train_by_hand({{\"{}\"}})",
        name, list_text(left), others_text(context, parameters),
        is_whole ? name + "_optimizer" : "optimizer", name, name));
  }
}

std::string shared_parameters(const Context& context) {
  std::string text;
  for (auto one = context.updates.begin(); one != context.updates.end(); ++one) {
    Tensors held;
    for (const auto& [key, tensor] : one->second->optimizer().parameters()) {
      held.insert(identity(tensor));
    }
    for (auto other = std::next(one); other != context.updates.end(); ++other) {
      std::vector<std::string> both;
      for (const auto& [key, tensor] : other->second->optimizer().parameters()) {
        if (held.contains(identity(tensor))) both.push_back(key);
      }
      if (both.empty()) continue;
      text += fmt::format(
          "{}{} and {} both train {}: each moves them by its own loss. An update takes the "
          "networks that it is to change, and no others that its loss passes through",
          text.empty() ? "" : "\n", one->first, other->first, list_text(both));
    }
  }
  return text;
}

void check_all_saved(const Context& context) {
  const Tensors in_networks = network_tensors(context);
  for (const auto& [name, update] : context.updates) {
    NamedParameters strangers;
    for (const auto& entry : update->optimizer().parameters()) {
      if (!in_networks.contains(identity(entry.second))) strangers.push_back(entry);
    }
    if (strangers.empty()) continue;
    const std::vector<at::Tensor> values = tracked_values(context);
    std::vector<std::string> lost;
    for (const auto& [key, tensor] : strangers) {
      const bool is_held =
          std::any_of(values.begin(), values.end(),
                      [&, &tensor = tensor](auto& value) { return holds(value, tensor); });
      if (!is_held) lost.push_back(key);
    }
    if (lost.empty()) continue;
    throw Error(fmt::format(
        "{} trains what no checkpoint would hold: {}. Of a module that the iterator makes, "
        "context.track(\"name\", *module) makes them part of the run's state; a network of the "
        "config is tracked by itself",
        name, list_text(lost)));
  }
}

}  // namespace stepop
