#include "runtime/train/networks/network.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {

ModelRegistry& models() {
  static ModelRegistry registry("model");
  return registry;
}

std::vector<std::string>& other_class_keys() {
  static std::vector<std::string> keys;
  return keys;
}

State tensors_of(const torch::nn::Module& module) {
  State state;
  for (const auto& item : module.named_parameters()) state.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace(item.key(), item.value());
  return state;
}

void load_tensors(const std::string& name, const State& own, const State& state) {
  std::vector<std::string> problems;
  for (const auto& [key, tensor] : own) {
    const auto found = state.find(key);
    if (found == state.end()) {
      problems.push_back(fmt::format("{}.{}: missing from the checkpoint", name, key));
    } else if (found->second.sizes() != tensor.sizes()) {
      problems.push_back(fmt::format("{}.{}: [{}] in the checkpoint, [{}] in the network", name,
                                     key, fmt::join(found->second.sizes(), ", "),
                                     fmt::join(tensor.sizes(), ", ")));
    } else if (found->second.scalar_type() != tensor.scalar_type()) {
      problems.push_back(fmt::format("{}.{}: {} in the checkpoint, {} in the network", name, key,
                                     describe_tensor(found->second), describe_tensor(tensor)));
    }
  }
  for (const auto& [key, tensor] : state) {
    if (!own.contains(key)) {
      problems.push_back(fmt::format("{}.{}: in the checkpoint only", name, key));
    }
  }
  if (!problems.empty()) {
    throw Error(fmt::format(
        "the checkpoint has another architecture than the network \"{}\":{}\nGive the config "
        "that it was trained with; or start a new run with the weights that fit: init_from with "
        "strict: false",
        name, list_lines(problems, "\n  ")));
  }
  const at::NoGradGuard no_grad;
  for (const auto& [key, tensor] : own) at::Tensor(tensor).copy_(state.at(key));
}

}  // namespace stepop
