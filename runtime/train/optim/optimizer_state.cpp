// The state of an optimizer: its tensors by name, for checkpoints.

#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/optim/optimizer.h"

namespace stepop {

/// Calls `visit(name, tensor)` for every tensor of the state. A tensor that another process keeps
/// is undefined.
template <class Visit>
void Optimizer::visit_state(const Visit& visit) const {
  make_slots();
  for (const Group& group : groups_) {
    for (size_t b = 0; b < group.buckets.size(); ++b) {
      const Bucket& bucket = group.buckets[b];
      for (size_t i = 0; i < bucket.parameters.size(); ++i) {
        const std::string& name = parameters_[group.members[b][i]].first;
        visit(name + ".step", bucket.is_own[i] ? bucket.steps[i] : at::Tensor());
        for (size_t s = 0; s < traits_.slots.size(); ++s) {
          const at::Tensor& slot = bucket.slots[s][i];
          if (slot.defined() || !bucket.is_own[i]) visit(name + "." + traits_.slots[s], slot);
        }
      }
    }
  }
}

void Optimizer::clear_state() {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  visit_state([](const std::string&, const at::Tensor& tensor) {
    if (tensor.defined()) tensor.zero_();
  });
  for (Group& group : groups_) {
    for (Bucket& bucket : group.buckets) std::ranges::fill(bucket.is_first, 1);
  }
}

State Optimizer::state() const {
  State state;
  visit_state([&](const std::string& name, const at::Tensor& tensor) {
    if (tensor.defined()) state[name] = tensor;
  });
  return state;
}

void Optimizer::load_state(const State& state) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  visit_state([&](const std::string& name, const at::Tensor& tensor) {
    known.insert(name);
    if (!tensor.defined()) return;
    const auto found = state.find(name);
    if (found == state.end() || !found->second.defined()) {
      problems.push_back(fmt::format("\"{}\" is missing", name));
    } else if (found->second.sizes() != tensor.sizes()) {
      problems.push_back(fmt::format("\"{}\" has the shape [{}], expected [{}]", name,
                                     fmt::join(found->second.sizes(), ", "),
                                     fmt::join(tensor.sizes(), ", ")));
    } else if (found->second.scalar_type() != tensor.scalar_type()) {
      problems.push_back(fmt::format("\"{}\" is {}, expected {}", name,
                                     describe_tensor(found->second), describe_tensor(tensor)));
    }
  });
  for (const auto& [name, tensor] : state) {
    if (!known.contains(name))
      problems.push_back(fmt::format("\"{}\" is unknown to this optimizer", name));
  }
  if (!problems.empty()) {
    throw Error(
        "the state does not fit the optimizer:" + list_lines(problems, "\n  ") +
        "\nGive the config that it was trained with; or start a new run with these weights: "
        "-r");
  }
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  visit_state([&](const std::string& name, const at::Tensor& tensor) {
    if (tensor.defined()) tensor.copy_(state.at(name));
  });
  for (Group& group : groups_) {
    for (Bucket& bucket : group.buckets) {
      std::transform(bucket.steps.begin(), bucket.steps.end(), bucket.is_first.begin(),
                     [](const at::Tensor& step) { return step.item<float>() == 0 ? 1 : 0; });
    }
  }
}

}  // namespace stepop
