#include "iterators/trainer/model_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The key of the examples' numbers in the dataset, which every batch has.
constexpr const char* kIndexKey = "index";

std::vector<std::string> keys_without_index(const Batch& batch) {
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : batch.tensors()) {
    if (key != kIndexKey) keys.push_back(key);
  }
  return keys;
}

}  // namespace

ModelInputs::ModelInputs(const Config& config, const LossModel& model)
    : is_mapped_(config.has("inputs")) {
  for (const auto& name : model.inputs()) inputs_.push_back({name, name});
  if (!is_mapped_) return;
  for (const auto& name : config.at("inputs").keys()) {
    const std::string path = "inputs/" + name;
    const auto key = config.get<std::string>(path);
    const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const Input& input) { return input.name == name; });
    if (found != inputs_.end()) {
      found->key = key;
    } else if (model.inputs().empty()) {
      inputs_.push_back({name, key});
    } else {
      throw config.error(path, fmt::format("the model takes no \"{}\"; it takes: {}", name,
                                           list_text(model.inputs())));
    }
  }
}

Batch ModelInputs::of(const Batch& batch) const {
  if (inputs_.empty()) return batch;
  OrderedMap<at::Tensor> tensors;
  OrderedMap<std::vector<std::string>> texts;
  for (const auto& [name, key] : inputs_) {
    if (const at::Tensor* tensor = batch.tensors().find(key)) {
      tensors.set(name, *tensor);
    } else if (const auto* text = batch.texts().find(key)) {
      texts.set(name, *text);
    } else {
      fail(batch);
    }
  }
  if (!is_mapped_) {
    for (const auto& key : keys_without_index(batch)) {
      if (!tensors.contains(key)) fail(batch);
    }
  }
  if (const at::Tensor* index = batch.tensors().find(kIndexKey)) tensors.set(kIndexKey, *index);
  return {std::move(tensors), std::move(texts), batch.indices()};
}

void ModelInputs::fail(const Batch& batch) const {
  std::vector<std::string> taken;
  std::vector<std::string> missing;
  std::vector<std::string> superfluous;
  for (const auto& [name, key] : inputs_) {
    taken.push_back(name == key ? name : fmt::format("{} (from {})", name, key));
    if (!batch.contains(key) && !batch.texts().contains(key)) missing.push_back(key);
  }
  std::vector<std::string> given = keys_without_index(batch);
  for (const auto& key : given) {
    const bool is_taken = std::any_of(inputs_.begin(), inputs_.end(),
                                      [&](const Input& input) { return input.key == key; });
    if (!is_mapped_ && !is_taken) superfluous.push_back(key);
  }
  for (const auto& [key, text] : batch.texts()) given.push_back(key);
  std::string what;
  if (!missing.empty()) what += fmt::format("; missing: {}", list_text(missing));
  if (!superfluous.empty()) what += fmt::format("; not needed: {}", list_text(superfluous));
  const auto example = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    return missing.empty() || input.key == missing.front();
  });
  throw Error(fmt::format(
      "the model takes {}, the batch has {}{}\n  in the config, inputs: {{{}: KEY}} says which key "
      "of the batch a name of the model is, and leaves out what the model does not take",
      list_text(taken), list_text(given), what, example->name));
}

}  // namespace stepop
