#include "runtime/tools/start/evaluation_config.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/base/error.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// Whether a value, with all nested values, comes from the run's own config `file`, and not from
/// the user who made this start.
bool is_of_run(const Value& value, const std::string& file) {
  if (value.origin().file != file) return false;
  if (value.is_list()) {
    return std::ranges::all_of(value.as_list(),
                               [&](const Value& item) { return is_of_run(item, file); });
  }
  return !value.is_map() || std::ranges::all_of(value.as_map(), [&](const auto& entry) {
    return is_of_run(entry.second, file);
  });
}

/// The map at `key`; made if it is missing.
Value::Map& map_at(Value& root, const char* key) {
  Value& value = root.as_map()[key];
  if (!value.is_map()) value = Value(Value::Map{});
  return value.as_map();
}

/// `new_data` for `-b data/new_data.yaml`; `predict` without files.
std::string name_of_prediction(const std::vector<std::string>& base) {
  std::string name = base.empty() ? "predict" : fs::path(base.back()).stem().string();
  for (char& c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!is_plain) c = '_';
  }
  return name;
}

}  // namespace

void name_evaluation(Value& root, const std::string& name) {
  map_at(root, "eval_hook").set("name", Value(name).set_origin({Origin::kCommandLine, 0}));
  root.as_map().erase("evaluations");
}

void leave_callbacks_to_functor(Value& root, const std::string& config_of_run) {
  const Value* functor = root.find("eval_functor");
  if (config_of_run.empty() || functor == nullptr || functor->is_null()) return;
  Value* hook = root.as_map().find("eval_hook");
  Value* callbacks =
      hook != nullptr && hook->is_map() ? hook->as_map().find("eval_callbacks") : nullptr;
  if (callbacks == nullptr || !callbacks->is_map()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : callbacks->as_map()) {
    if (is_of_run(value, config_of_run)) names.push_back(name);
  }
  for (const auto& name : names) callbacks->as_map().erase(name);
  if (callbacks->as_map().empty()) hook->as_map().erase("eval_callbacks");
}

void make_prediction(Value& root, const std::vector<std::string>& base,
                     const std::string& config_of_run) {
  constexpr const char* kOp = "predict/eval_op";
  constexpr const char* kPredict = "Predict";
  name_evaluation(root, name_of_prediction(base));
  Value::Map& hook = map_at(root, "eval_hook");
  const Value* op = hook.find("eval_op");
  if (op == nullptr || is_of_run(*op, config_of_run)) hook.set("eval_op", Value(kOp));
  const bool takes_new_data = *hook.find("eval_op") == Value(kOp);
  const Value* limit = hook.find("max_batches");
  if (limit != nullptr && is_of_run(*limit, config_of_run)) hook.erase("max_batches");
  // A null functor leaves the choice to the iterator.
  Value* functor = root.find("eval_functor");
  if (functor == nullptr || (functor->is_null() && is_of_run(*functor, config_of_run))) {
    root.as_map().set("eval_functor", Value(kPredict));
  } else if (functor->is_map() && !functor->as_map().contains("class")) {
    functor->as_map().set("class", Value(kPredict));
  }
  constexpr int64_t kBatch = 64;  // of a file's network, without a run's config
  if (config_of_run.empty() && root.find("batch_size") == nullptr) {
    root.as_map().set("batch_size", Value(kBatch));
  }
  if (!takes_new_data || root.find("datasets/predict") != nullptr) return;
  throw UsageError(
      "stepop predict: no data: the config has no datasets/predict; give it in a file of -b, such "
      "as  datasets: {predict: {class: ImageFolder, path: photos, classes: []}}  or on the command "
      "line, --datasets/predict/class and so on; --eval_hook/eval_op validation/eval_op takes "
      "a split that is there");
}

}  // namespace stepop
