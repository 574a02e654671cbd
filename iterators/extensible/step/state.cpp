#include "iterators/extensible/step/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/error.h"

namespace stepop::extensible {

Slot Keys::slot(std::string_view name) {
  if (const Slot found = find(name)) return found;
  names_.emplace_back(name);
  return {static_cast<int32_t>(names_.size()) - 1};
}

Slot Keys::find(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? Slot{} : Slot{static_cast<int32_t>(found - names_.begin())};
}

void StepState::fail(Slot slot, const char* expected) const {
  static constexpr const char* kFound[] = {"nothing", "a tensor", "several tensors", "a number"};
  throw Error(fmt::format("{}: expected {}, found {}", keys_->name(slot), expected,
                          kFound[item(slot).index()]));
}

const at::Tensor& StepState::tensor(Slot slot) const {
  const auto* found = std::get_if<at::Tensor>(&item(slot));
  if (found == nullptr) fail(slot, "a tensor");
  return *found;
}

const std::vector<at::Tensor>& StepState::tensors(Slot slot) const {
  const auto* found = std::get_if<std::vector<at::Tensor>>(&item(slot));
  if (found == nullptr) fail(slot, "several tensors");
  return *found;
}

double StepState::number(Slot slot) const {
  if (const auto* number = std::get_if<double>(&item(slot))) return *number;
  const auto* tensor = std::get_if<at::Tensor>(&item(slot));
  if (tensor == nullptr || tensor->numel() != 1) fail(slot, "a number");
  return tensor->item<double>();
}

void StepState::detach(Slot slot) {
  Item& item = items_[at(slot)];
  if (auto* tensor = std::get_if<at::Tensor>(&item)) *tensor = tensor->detach();
  if (auto* several = std::get_if<std::vector<at::Tensor>>(&item)) {
    for (auto& tensor : *several) tensor = tensor.detach();
  }
}

}  // namespace stepop::extensible
