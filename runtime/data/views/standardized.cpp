#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/example_random.h"
#include "runtime/data/fitted.h"
#include "runtime/data/keeps_float64.h"
#include "runtime/data/notice.h"
#include "runtime/data/views/standardization.h"

namespace stepop {
namespace {

/// What is nearly never wanted: other numbers than the training's.
std::string doubts(const Config& params) {
  const Config root = params.root();
  const auto is_of = [&](const std::string& split) {
    const std::string place = "datasets/" + split;
    return params.path() == place || params.path().starts_with(place + "/");
  };
  if (!is_of("train")) {
    if (!root.has("datasets/train")) return "";
    const auto training = find_part(params, "train", "Standardized");
    if (!training) return "standardized, and datasets/train is not";
    const auto mean = [](const Config& part) {
      const Value* value = part.peek("mean");
      return value == nullptr ? Value() : *value;
    };
    const Value* fit = params.peek("fit");
    const bool is_fitted = fit != nullptr && !fit->is_null();
    if (is_fitted || (!mean(params).is_null() && mean(params) == mean(*training))) return "";
    return "standardized by its own mean and deviation, not by those of the training: fit: train";
  }
  for (const auto& split : root.at("datasets").keys()) {
    const Value* other = root.peek("datasets/" + split);
    if (split == "train" || other->is_null() || find_part(params, split, "Standardized")) continue;
    return fmt::format(
        "standardized, and datasets/{0} is not: datasets/{0}: {{class: Standardized, "
        "fit: train, dataset: ...}}",
        split);
  }
  return "";
}

/// Another dataset whose numbers have the mean 0 and the standard deviation 1.
class Standardized : public Dataset {
 public:
  struct Params {
    std::unique_ptr<Dataset> dataset;
    std::vector<std::string> keys;
    std::optional<std::string> fit;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "the other one, such as {class: Csv, ...}");
      std::optional<std::vector<std::string>> chosen;
      p.add("keys", chosen, "whose numbers; none: all keys of floats");
      keys = chosen.value_or(keys);
      p.add("fit", fit,
            "name of the split, such as train, whose Standardized has the numbers; none: they are "
            "fitted on this dataset");
      // Read later, and not beside `fit`.
      p.describe({"mean",
                  "none",
                  "fitted: by key, a number, one for each place of a vector or each channel",
                  false,
                  {.kind = "map"}});
      p.describe({"std", "none", "fitted: the standard deviations", false, {.kind = "map"}});
    }
  };

  Standardized(Params given, const Config& params) : source_(std::move(given.dataset)) {
    const auto& keys = given.keys;
    if (given.fit) {
      const Config part = part_to_fit(params, "Standardized");
      if (!part.has("mean"))
        datasets().build(params.root(), part.path());  // the constructor
                                                       // writes the mean
      numbers_ = read_standardization(part);
    } else {
      numbers_ = read_standardization(params);
      if (numbers_.empty() && source_->size() > 0) {
        numbers_ = fit_standardization(*source_, keys);
        save_standardization(numbers_, params);
      }
    }
    notice_ = doubts(params);
    for (const auto& [key, one] : numbers_) {
      const bool is_wanted = keys.empty() || std::ranges::find(keys, key) != keys.end();
      if (!is_wanted || keep_float64(*source_, key)) continue;
      notice_ = joined_notices({notice_, rounding_of(key, one)});
    }
    is_for_all_ = keys.empty();
    if (is_for_all_) return;
    for (const auto& key : keys) {
      if (numbers_.contains(key)) continue;
      throw params.error("keys", "there is no mean of \"" + key +
                                     "\"; leave out mean and std, and "
                                     "they are fitted anew");
    }
    std::erase_if(numbers_, [&](const auto& entry) {
      return std::find(keys.begin(), keys.end(), entry.first) == keys.end();
    });
  }

  int64_t size() const override { return source_->size(); }

  Example get(int64_t index, Random& random) const override {
    Example example = source_->get(index, random);
    for (const auto& [key, one] : numbers_) {
      at::Tensor* values = example.tensors.find(key);
      if (values == nullptr && is_for_all_)
        continue;  // a missing key, such as the targets of new
                   // rows
      if (values == nullptr) {
        throw Error("Standardized: there is no tensor \"" + key +
                    "\"; there are: " + example.tensors.key_list());
      }
      *values = one.apply(*values, values->dim());
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    auto batch = source_->get_batch(indices, randoms);
    if (!batch) return batch;
    for (const auto& [key, one] : numbers_) {
      if (is_for_all_ && !batch->contains(key)) continue;
      const at::Tensor values = (*batch)[key];
      batch->set(key, one.apply(values, values.dim() - 1));
    }
    return batch;
  }

  at::Tensor labels(std::string_view key) const override {
    const at::Tensor labels = source_->labels(key);
    const auto one = numbers_.find(std::string(key));
    if (!labels.defined() || one == numbers_.end()) return labels;
    return one->second.apply(labels, labels.dim() - 1);
  }

  std::vector<std::string> label_keys() const override { return source_->label_keys(); }
  std::optional<SourceRows> source_rows() const override { return source_->source_rows(); }
  std::string notice() const override { return joined_notices({notice_, source_->notice()}); }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return source_->collate(examples, std::move(indices));
  }

 private:
  /// A warning when the numbers come as float32, which has rounded away digits that matter.
  std::string rounding_of(const std::string& key, const Standardization& one) const {
    constexpr double kFloat32Rounding = 0x1p-24;  // relative
    if (!one.needs_float64() || source_->size() == 0) return {};
    Example example;
    try {
      Random random = random_of_fixed_example(0);
      example = source_->get(0, random);
    } catch (const Error&) {  // reported when it is read
    }
    const at::Tensor* values = example.tensors.find(key);
    if (values == nullptr || values->scalar_type() != at::kFloat) return {};
    double most = 0;
    for (const double mean : one.mean()) most = std::max(most, std::abs(mean));
    return fmt::format(
        "{}Standardized: \"{}\" comes as float32, which rounds numbers of this size by up to {}, "
        "before the mean is subtracted; a Standardized right around the dataset that reads the "
        "file subtracts first",
        kWarning, key, short_number(most * kFloat32Rounding));
  }

  std::unique_ptr<Dataset> source_;
  std::map<std::string, Standardization> numbers_;  ///< The standardization of each key.
  bool is_for_all_ = false;                         ///< The config names no keys.
  std::string notice_;
};

STEPOP_REGISTER_DATASET(
    Standardized, {"Another dataset's numbers with the mean 0 and the standard deviation 1."});

}  // namespace
}  // namespace stepop
