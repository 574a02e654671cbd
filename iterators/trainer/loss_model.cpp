#include "iterators/trainer/loss_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <typeinfo>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The class name without namespaces.
std::string short_class_name(const LossModel& model) {
  const std::string name = demangled(typeid(model).name());
  const size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

}  // namespace

at::Tensor LossModel::sample(const Batch& /*conditions*/) {
  throw Error(
      fmt::format("the model {} makes no samples: a sampler needs its function at::Tensor "
                  "sample(const stepop::Batch& conditions)",
                  short_class_name(*this)));
}

at::Tensor LossModel::reconstruct(const Batch& /*batch*/) {
  throw Error(
      fmt::format("the model {} makes no reconstructions: a sampler needs its function at::Tensor "
                  "reconstruct(const stepop::Batch& batch)",
                  short_class_name(*this)));
}

bool is_parameter_of(const std::string& parameter, const std::string& submodule) {
  return parameter == submodule || parameter.starts_with(submodule + ".");
}

void AdversarialModel::train_only(const std::vector<std::string>& submodules) {
  const auto parameters = named_parameters();
  for (const auto& submodule : submodules) {
    const bool is_there = std::any_of(
        parameters.begin(), parameters.end(),
        [&](const auto& parameter) { return is_parameter_of(parameter.key(), submodule); });
    if (is_there) continue;
    std::vector<std::string> names;
    for (const auto& child : named_children()) names.push_back(child.key());
    throw Error(fmt::format("no sub-module \"{}\" with parameters in the model {}; there are: {}",
                            submodule, short_class_name(*this), list_text(names)));
  }
  for (const auto& parameter : parameters) {
    const bool is_trained = std::any_of(
        submodules.begin(), submodules.end(),
        [&](const std::string& submodule) { return is_parameter_of(parameter.key(), submodule); });
    at::Tensor tensor = parameter.value();
    if (tensor.requires_grad() == is_trained) continue;
    tensor.set_requires_grad(is_trained);
    tensor.mutable_grad().reset();
  }
}

}  // namespace stepop
