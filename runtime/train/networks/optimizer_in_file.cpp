#include "runtime/train/networks/optimizer_in_file.h"

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/torch_file.h"
#include "runtime/core/formats/weights_file.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

using Slots = std::map<std::string, at::Tensor>;

constexpr const char* kStep = "step";

std::string names_of_slots(const Slots& slots) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : slots) names.push_back(name);
  return names.empty() ? "nothing" : list_text(names);
}

/// The tensors in `state` whose names begin with `prefix`, by the rest of their names.
Slots slots_below(const State& state, const std::string& prefix) {
  Slots slots;
  for (auto at = state.lower_bound(prefix); at != state.end() && at->first.starts_with(prefix);
       ++at) {
    const std::string rest = at->first.substr(prefix.size());
    if (rest.find('.') == std::string::npos) slots.emplace(rest, at->second);
  }
  return slots;
}

class OptimizerReader {
 public:
  OptimizerReader(const std::string& path, const NameRules& rules, const torch::nn::Module& network,
                  const Update& update)
      : path_(path), file_(load_torch_checkpoint(path)), update_(update) {
    find_dict();
    find_numbers(rules, network);
  }

  OptimizerInFile read() const {
    OptimizerInFile found;
    found.state = update_.state();
    for (const auto& [name, parameter] : update_.optimizer().parameters()) {
      const auto number = numbers_.find(parameter.const_data_ptr());
      if (number == numbers_.end()) continue;
      const Slots there =
          slots_below(file_.tensors, fmt::format("{}.state.{}.", dict_, number->second));
      if (there.empty()) continue;
      copy(name, there, found);
      ++found.count;
    }
    if (found.count == 0) {
      fail(
          fmt::format("\"{}\", the state of its optimizer, is empty: it was saved before the first "
                      "step; leave out `optimizer: true`",
                      dict_));
    }
    found.state["count"] = at::scalar_tensor(found.updates, at::kLong);
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(path_ + ": " + what); }

  void find_dict() {
    if (file_.parameter_groups.empty()) {
      fail(
          "there is no state of an optimizer, a dict with `state` and `param_groups`, beside its "
          "weights; leave out `optimizer: true`");
    }
    if (file_.parameter_groups.size() > 1) {
      std::vector<std::string> names;
      for (const auto& [name, groups] : file_.parameter_groups) names.push_back(name);
      fail(fmt::format("it has the states of {} optimizers, {}; a file with one of them is read",
                       names.size(), list_text(names)));
    }
    dict_ = file_.parameter_groups.begin()->first;
    const size_t groups = file_.parameter_groups.begin()->second.size();
    if (groups != 1) {
      fail(
          fmt::format("\"{}\", its optimizer, has {} groups of parameters; one that was made with "
                      "net.parameters() is read",
                      dict_, groups));
    }
  }

  /// Finds the number that each parameter has there.
  void find_numbers(const NameRules& rules, const torch::nn::Module& network) {
    std::map<std::string, const void*> own;
    for (const auto& item : network.named_parameters()) {
      own.emplace(item.key(), item.value().const_data_ptr());
    }
    for (const auto& name : file_.names) {
      const auto renamed = name_by_rules(name, rules);
      const auto found = renamed ? own.find(*renamed) : own.end();
      // A tied parameter has several names there, and one number.
      if (found != own.end()) numbers_.emplace(found->second, numbers_.size());
    }
    const size_t there = file_.parameter_groups.begin()->second.front();
    if (there == numbers_.size()) return;
    fail(
        fmt::format("\"{}\", its optimizer, has {} parameters, and {} of the file's weights are "
                    "parameters of the network; each has to be one, to know which is which",
                    dict_, there, numbers_.size()));
  }

  /// Copies what is kept for a parameter.
  void copy(const std::string& name, const Slots& there, OptimizerInFile& found) const {
    const Slots here = slots_below(found.state, name + ".");
    const bool fits = std::ranges::equal(
        here, there, [](const auto& a, const auto& b) { return a.first == b.first; });
    if (!fits) {
      fail(fmt::format(
          "\"{}\", its optimizer, keeps {} for a parameter, and the optimizer here "
          "{}; give the class, and options such as `amsgrad`, with which it was trained",
          dict_, names_of_slots(there), names_of_slots(here)));
    }
    for (const auto& [slot, tensor] : there) {
      const at::Tensor& own = here.at(slot);
      if (tensor.sizes() != own.sizes()) {
        fail(fmt::format("\"{}\", its optimizer: {} of {}: [{}] in the file, [{}] here", dict_,
                         slot, name, fmt::join(tensor.sizes(), ", "),
                         fmt::join(own.sizes(), ", ")));
      }
      found.state[name + "." + slot] = tensor.to(own.scalar_type());
    }
    const auto step = there.find(kStep);
    if (step == there.end()) return;
    found.updates = std::max(found.updates, static_cast<int64_t>(step->second.item<double>()));
  }

  std::string path_;
  TorchCheckpoint file_;
  const Update& update_;
  std::string dict_;                       ///< The name of the optimizer's state in the file.
  std::map<const void*, size_t> numbers_;  ///< By the memory of the parameter here.
};

}  // namespace

OptimizerInFile read_optimizer(const std::string& path, const NameRules& rules,
                               const torch::nn::Module& network, const Update& update) {
  if (!is_weights_of_python(path)) {
    throw Error(path + ": only a file of torch.save has the state of an optimizer of PyTorch");
  }
  return OptimizerReader(path, rules, network, update).read();
}

}  // namespace stepop
