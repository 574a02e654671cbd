#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/data/example_random.h"
#include "runtime/data/views/example_function.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// Another dataset's examples, changed by registered functions.
class Map : public SameOrder, public KeepsFloat64 {
 public:
  struct Params {
    Source dataset;
    std::vector<std::unique_ptr<ExampleFunction>> functions;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "the other one");
      const Config* config = p.describe_required(
          "function", "component example function | list of component example function",
          "its name, or {class: rename, keys: {image: input}}; or a list of them, applied in turn");
      if (config == nullptr) return;
      config->has("function");
      const Value* value = config->peek("function");
      const bool is_list = value != nullptr && value->is_list();
      if (!is_list) functions.push_back(example_functions().build(*config, "function"));
      for (size_t i = 0; is_list && i < value->as_list().size(); ++i) {
        functions.push_back(example_functions().build(*config, "function/" + std::to_string(i)));
      }
    }
  };

  explicit Map(Params params)
      : SameOrder(std::move(params.dataset)), functions_(std::move(params.functions)) {
    for (const auto& function : functions_) {
      const auto* keys = dynamic_cast<const KeyFunction*>(function.get());
      if (keys != nullptr) key_functions_.push_back(keys);
    }
    for (const auto& before : source()->label_keys()) {
      const std::string key = key_after(before);
      if (!key.empty()) labels_.set(key, before);
    }
  }

  Example get(int64_t index, Random& random) const override {
    Random own = split_off(random);
    Example example = source()->get(index, random);
    for (const auto& function : functions_) example = (*function)(std::move(example), own);
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    if (key_functions_.size() != functions_.size()) return std::nullopt;
    std::vector<Random> inner(randoms.begin(), randoms.end());
    for (Random& random : inner) split_off(random);
    Batch batch = source().load(indices, inner, indices);
    for (const auto* function : key_functions_) batch = function->apply(batch);
    return batch;
  }

  at::Tensor labels(std::string_view key) const override {
    const std::string* before = labels_.find(key);
    return before == nullptr ? at::Tensor() : source().labels(*before);
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const auto& [key, before] : labels_) keys.push_back(key);
    return keys;
  }

  /// Only where keys are renamed or left out: another function may expect float32, and compute.
  bool keep_float64(std::string_view key) override {
    if (key_functions_.size() != functions_.size()) return false;
    if (const std::string* before = labels_.find(key)) return source().keep_float64(*before);
    if (size() == 0) return false;
    Example first;
    try {
      Random random = random_of_fixed_example(0);
      first = source()->get(0, random);
    } catch (const Error&) {  // reported when it is read
    }
    for (const auto& [before, tensor] : first.tensors) {
      if (key_after(before) == key) return source().keep_float64(before);
    }
    return false;
  }

 private:
  /// The name behind all functions; empty when there is none.
  std::string key_after(std::string key) const {
    for (const auto& function : functions_) {
      if (!key.empty()) key = function->key_after(key);
    }
    return key;
  }

  std::vector<std::unique_ptr<ExampleFunction>> functions_;
  std::vector<const KeyFunction*> key_functions_;  ///< The key functions among `functions_`.
  OrderedMap<std::string> labels_;                 ///< The source's name of each label.
};

STEPOP_REGISTER_DATASET(Map, {"Another dataset's examples, changed by a registered function."});

}  // namespace
}  // namespace stepop
