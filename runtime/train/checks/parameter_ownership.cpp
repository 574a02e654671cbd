#include "runtime/train/checks/parameter_ownership.h"

#include <ATen/ops/equal.h>
#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/update.h"

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

/// All tracked tensors except those of networks and updates.
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

/// The updates that hold some of `parameters`: `; "optimizer" holds 3 of its 4`, or an empty text.
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

/// Whether `value` is the tensor itself or a copy of it.
bool holds(const at::Tensor& value, const at::Tensor& tensor) {
  if (!value.defined() || value.sizes() != tensor.sizes()) return false;
  if (value.is_same(tensor) || value.is_alias_of(tensor)) return true;
  return at::equal(value.to(tensor.options()), tensor.detach());
}

/// The entries of `tensors` that no tracked object holds.
template <class Entry, class TensorOf>
std::vector<Entry> not_tracked(const Context& context, const std::vector<Entry>& tensors,
                               const TensorOf& tensor_of) {
  if (tensors.empty()) return {};
  const std::vector<at::Tensor> values = tracked_values(context);
  std::vector<Entry> lost;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(lost), [&](const Entry& entry) {
    return std::none_of(values.begin(), values.end(),
                        [&](const at::Tensor& value) { return holds(value, tensor_of(entry)); });
  });
  return lost;
}

/// A leaf of a loss's graph that requires a gradient.
struct Leaf {
  at::Tensor tensor;
  bool is_of_layer = false;  ///< An operation takes it as the weight or bias of a layer.
};

/// Whether the input of that number of an operation is a weight or a bias: such as the second of a
/// convolution. Linear layers transpose their weight.
bool takes_weight(const std::string& operation, size_t input) {
  if (operation == "TBackward0" || operation == "EmbeddingBackward0") return input == 0;
  if (operation == "AddmmBackward0") return input == 0;
  return input > 0 && (operation == "ConvolutionBackward0" || operation.ends_with("NormBackward0"));
}

/// The leaves of the graph of `loss`, each once.
std::vector<Leaf> leaves_of(const at::Tensor& loss) {
  using torch::autograd::Node;
  std::vector<Leaf> leaves;
  std::vector<std::pair<Node*, bool>> open;
  std::set<Node*> seen;
  const auto visit = [&](Node* node, bool is_weight) {
    if (node != nullptr && seen.insert(node).second) open.emplace_back(node, is_weight);
  };
  visit(loss.grad_fn().get(), false);
  while (!open.empty()) {
    const auto [node, is_weight] = open.back();
    open.pop_back();
    if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node)) {
      leaves.push_back({leaf->variable, is_weight});
    }
    const std::string operation = node->name();
    for (size_t i = 0; i < node->next_edges().size(); ++i) {
      visit(node->next_edge(i).function.get(), takes_weight(operation, i));
    }
  }
  return leaves;
}

/// Looks for leaves without an owner that appear in the losses of two batches.
class LeafWatch {
 public:
  LeafWatch(const Context& context, std::string update)
      : context_(context), update_(std::move(update)) {}

  /// Looks at a loss; false when no further loss is needed.
  bool see(const at::Tensor& loss) {
    const Batch batch{context_.clock.global_step, context_.clock.micro_batch};
    if (!batches_.contains(batch) && batches_.size() == 2) return false;
    batches_.insert(batch);
    Tensors known = network_tensors(context_);
    known.merge(trained_tensors(context_));
    std::vector<at::Tensor> shared;
    std::vector<at::Tensor> anew;
    for (const auto& [leaf, is_of_layer] : leaves_of(loss)) {
      if (known.contains(identity(leaf))) continue;
      if (batches_.size() == 1) {
        // A weak pointer keeps the address from being used for another tensor.
        first_.emplace_back(leaf.getIntrusivePtr());
      } else if (is_of_first(leaf)) {
        shared.push_back(leaf);
      }
      if (is_of_layer) anew.push_back(leaf);
    }
    if (batches_.size() == 2 && shared.empty() && !anew.empty()) warn(anew);
    const auto strangers =
        not_tracked(context_, shared, [](const at::Tensor& leaf) { return leaf; });
    if (!strangers.empty()) throw error(strangers);
    return true;
  }

 private:
  using Batch = std::pair<int64_t, int64_t>;  ///< The step, and the batch within it.
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  bool is_of_first(const at::Tensor& leaf) const {
    return std::any_of(first_.begin(), first_.end(), [&](const WeakTensor& other) {
      return other._unsafe_get_target() == leaf.unsafeGetTensorImpl();
    });
  }

  void warn(const std::vector<at::Tensor>& anew) const {
    if (!context_.log.is_first("parameters made anew")) return;
    context_.log.warn(fmt::format(
        "{}: the loss depends on layers that each step makes anew: {}. They are never trained: "
        "make them in the constructor, {}; what is not to be trained needs no gradient, "
        "requires_grad_(false) on its parameters",
        update_, shapes_of(anew), kRegisterModule));
  }

  static std::string shapes_of(const std::vector<at::Tensor>& leaves) {
    std::vector<std::string> shapes;
    for (const auto& leaf : leaves) shapes.push_back(describe_tensor(leaf));
    return list_text(shapes);
  }

  Error error(const std::vector<at::Tensor>& strangers) const {
    return Error(fmt::format(
        "{}: the loss depends on tensors that no update trains and no checkpoint holds: {}\n"
        "  a layer of a network: register it in the constructor, {}; else it is neither trained "
        "nor saved\n"
        "  a module that the iterator makes: context.track(\"name\", *module); "
        "context.update_of() trains it\n"
        "  what is to stay as it is: requires_grad_(false) on its parameters",
        update_, shapes_of(strangers), kRegisterModule));
  }

  const Context& context_;
  std::string update_;
  std::set<Batch> batches_;
  std::vector<WeakTensor> first_;  ///< Unknown leaves of the first batch.
};

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
    if (context.networks.is_trained_by_hand(name)) {
      if (context.world.is_alone()) continue;
      throw Error(
          fmt::format("context.train_by_hand({{\"{0}\"}}) with {1} processes: nothing sums the "
                      "gradients of an optimizer that is not an Update, so each process would "
                      "train a network of its own. Train "
                      "\"{0}\" by context.update(), or in one process: --processes 1",
                      name, context.world.size()));
    }
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
  std::vector<std::string> complex;
  for (const auto& network : context.networks.names()) {
    for (const auto& [key, tensor] : context.networks.tensors(network)) {
      if (tensor.is_complex()) complex.push_back(network + "." + key);
    }
  }
  if (!complex.empty()) {
    throw Error(fmt::format(
        "complex numbers can be neither trained nor saved: {}. Keep real ones, torch::view_as_real "
        "(in Python torch.view_as_real), and compute with view_as_complex of them; a constant need "
        "not be a persistent buffer",
        list_text(complex)));
  }
  const Tensors in_networks = network_tensors(context);
  for (const auto& [name, update] : context.updates) {
    NamedParameters strangers;
    for (const auto& entry : update->optimizer().parameters()) {
      if (!in_networks.contains(identity(entry.second))) strangers.push_back(entry);
    }
    const auto lost =
        not_tracked(context, strangers, [](const auto& entry) { return entry.second; });
    if (lost.empty()) continue;
    throw Error(fmt::format(
        "{} trains what no checkpoint would hold: {}. For a module that the iterator makes, "
        "context.track(\"name\", *module) makes them part of the run's state; a network of the "
        "config is tracked by itself",
        name, list_names(NamedParameters(lost.begin(), lost.end()))));
  }
}

void watch_losses(const Context& context) {
  for (const auto& [name, update] : context.updates) {
    const auto watch = std::make_shared<LeafWatch>(context, name);
    update->watch_losses(watch.get(),
                         [watch](const WeightedMean& loss) { return watch->see(loss.value()); });
  }
}

}  // namespace stepop
