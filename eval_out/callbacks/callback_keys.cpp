#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "eval_out/callbacks/classes.h"
#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/eval_schema.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The keys at a parameter, a text or a list of texts; `usual` is the default.
std::vector<std::string> named_keys(const Config& params, const std::string& parameter,
                                    const std::string& usual) {
  const Value* value = params.peek(parameter);
  if (value == nullptr || value->is_null()) {
    const bool is_none =
        usual.empty() || usual == "none" || usual == "null" || usual.starts_with('[');
    return is_none ? std::vector<std::string>{} : std::vector{usual};
  }
  if (value->is_text()) return {value->as_text()};
  std::vector<std::string> keys;
  if (!value->is_list()) return keys;
  for (const Value& item : value->as_list()) {
    if (item.is_text()) keys.push_back(item.as_text());
  }
  return keys;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// A dataset whose labels cannot be read may have the key.
bool has_labels(const Dataset& data, const std::string& key) {
  try {
    return data.labels(key).defined();
  } catch (const std::exception&) {
    return true;
  }
}

/// The scores [rows, classes] that a callback of classes reads; undefined where the eval op gives
/// classes in their place.
at::Tensor scores_of(const Config& params, const EvalOutputs& outputs) {
  const auto keys = named_keys(params, "logits", "logits");
  const EvalValue* value = keys.empty() ? nullptr : outputs.outputs.find(keys.front());
  const auto* scores = value == nullptr ? nullptr : std::get_if<at::Tensor>(value);
  const bool are_scores = scores != nullptr && scores->defined() && scores->dim() == 2;
  return are_scores ? *scores : at::Tensor();
}

/// What an evaluation's file is going to have, and the keys of the dataset.
struct Known {
  std::vector<std::string> file;
  std::vector<std::string> dataset;

  std::string nearest(const std::string& key, bool with_dataset) const {
    std::vector<std::string> names = file;
    for (const auto& name : file) names.push_back(name.substr(name.find('/') + 1));
    if (with_dataset) names.insert(names.end(), dataset.begin(), dataset.end());
    const auto found = nearest_paths(key, names, 1);
    return found.empty() ? "" : fmt::format("; did you mean \"{}\"?", found[0]);
  }
};

}  // namespace

void EvaluationCallbacks::check_keys(const EvalOutputs& outputs, const Batch& batch,
                                     const Dataset& data) const {
  Known known;
  for (const auto& [key, value] : flatten(outputs)) known.file.push_back(key);
  for (const auto& [key, tensor] : batch.tensors()) known.dataset.push_back(key);
  for (const auto& [name, callback, params, script, function] : callbacks_) {
    const auto* parameters = keys_of_callbacks().find(callback);
    if (parameters == nullptr) continue;
    const std::string place = join_path(place_, name);
    const auto& about = callbacks().registration(callback, config_, place).about;
    for (const KeyParameter& parameter : *parameters) {
      const auto declared =
          std::ranges::find(about.parameters, parameter.name, [](const auto& p) { return p.name; });
      const std::string usual = declared == about.parameters.end() ? "" : declared->default_value;
      const bool in_dataset = parameter.from == KeyParameter::From::kFileOrDataset;
      for (const auto& key : named_keys(params, parameter.name, usual)) {
        if (has(known.file, key) || has(known.file, "outputs/" + key) ||
            has(known.file, "labels/" + key)) {
          continue;
        }
        if (in_dataset && (has(known.dataset, key) || has_labels(data, key))) continue;
        const bool is_given = params.has(parameter.name);
        std::string text = fmt::format(
            "the callback {} looks for the key \"{}\", which is not there{}{}\n  the eval op "
            "returns {}",
            callback, key, known.nearest(key, in_dataset),
            is_given ? "" : fmt::format("; name another one by \"{}\"", parameter.name),
            list_text(known.file));
        if (in_dataset) text += "; the dataset has " + list_text(known.dataset);
        throw is_given ? params.error(parameter.name, text) : config_.error(place, text);
      }
    }
    if (const ClassCheck* check = class_checks().find(callback)) {
      const at::Tensor scores = scores_of(params, outputs);
      if (scores.defined()) (*check)(params, scores.size(1));
    }
  }
}

}  // namespace stepop
