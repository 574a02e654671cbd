#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/text.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// The labels of another dataset, without its examples: no file behind them is read.
class LabelsOnly : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    Source dataset;
    std::optional<std::vector<std::string>> keys;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "whose labels are read");
      p.add("keys", keys, "a list of those that are taken; none: all");
    }
  };

  LabelsOnly(Params params, const Config& config) : source_(std::move(params.dataset)) {
    const std::vector<std::string> known = source_->label_keys();
    for (const auto& key : params.keys.value_or(known)) {
      at::Tensor values = source_.labels(key);
      if (!values.defined()) {
        throw config.error("keys", fmt::format("{} has no label \"{}\"; its labels are: {}",
                                               source_.place(), key, list_text(known)));
      }
      labels_.set(key, std::move(values));
    }
    if (labels_.empty()) throw config.error("dataset", "it has no labels");
  }

  int64_t size() const override { return source_.size(); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    Example example;
    for (const auto& [key, values] : labels_) example.tensors.set(key, values[index]);
    return example;
  }

  at::Tensor labels(std::string_view key) const override {
    const at::Tensor* values = labels_.find(key);
    return values == nullptr ? at::Tensor() : *values;
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const auto& [key, values] : labels_) keys.push_back(key);
    return keys;
  }

  std::string notice() const override { return source_->notice(); }
  std::optional<SourceRows> source_rows() const override { return source_->source_rows(); }

  bool keep_float64(std::string_view key) override {
    at::Tensor* values = labels_.find(key);
    if (values == nullptr || !source_.keep_float64(key)) return false;
    *values = source_.labels(key);
    return true;
  }

 private:
  Source source_;
  OrderedMap<at::Tensor> labels_;  ///< Each [size(), ...].
};

STEPOP_REGISTER_DATASET(LabelsOnly,
                        {"The labels of another dataset, without reading its examples."});

}  // namespace
}  // namespace stepop
