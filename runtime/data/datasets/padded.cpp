#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/dataset.h"
#include "runtime/data/keeps_float64.h"

namespace stepop {
namespace {

/// Pads the examples of another dataset, which differ in size, to the largest example of each
/// batch. The padding follows the example's own values.
///
/// For each padded `key`, a batch also holds `key_length`, int64 [B], the sizes of the first
/// dimension, and with `mask` also `key_mask`, bool [B, T], which is true for the example's own
/// values. A single example is not padded.
class Padded : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    std::unique_ptr<Dataset> dataset;
    std::vector<std::pair<std::string, double>> pads;  ///< Keys and the values that pad them.
    bool mask = false;
    int64_t multiple_of = 1;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "the other one, such as {class: Text, ...}");
      const Config* config = p.describe_required(
          "pad", "map", "map from keys to the values that they are padded with: {tokens: 0}");
      if (config != nullptr) {
        for (const auto& key : config->at("pad").keys()) {
          pads.emplace_back(key, config->get<double>("pad/" + key));
        }
        if (pads.empty()) {
          throw config->error("pad",
                              "expected a map from keys to the values they are padded with, such "
                              "as {tokens: 0}");
        }
      }
      p.add("mask", mask, "whether batches also have KEY_mask, true where values are real");
      p.add("multiple_of", multiple_of, "the first dimension is padded to a multiple of this",
            at_least(1).at_most(1 << 20));
    }
  };

  explicit Padded(Params params)
      : source_(std::move(params.dataset)),
        pads_(std::move(params.pads)),
        has_mask_(params.mask),
        multiple_(params.multiple_of) {}

  int64_t size() const override { return source_->size(); }
  Example get(int64_t index, Random& random) const override { return source_->get(index, random); }
  at::Tensor labels(std::string_view key) const override { return source_->labels(key); }
  std::vector<std::string> label_keys() const override { return source_->label_keys(); }
  std::optional<SourceRows> source_rows() const override { return source_->source_rows(); }
  std::string notice() const override { return source_->notice(); }
  bool keep_float64(std::string_view key) override { return stepop::keep_float64(*source_, key); }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    std::vector<Example> rest = examples;
    std::vector<std::vector<at::Tensor>> parts(pads_.size());
    for (size_t i = 0; i < rest.size(); ++i) {
      for (size_t k = 0; k < pads_.size(); ++k) {
        const at::Tensor* part = rest[i].tensors.find(pads_[k].first);
        if (part == nullptr || !part->defined()) {
          throw Error(fmt::format("example {}: has no tensor \"{}\" to pad; there are: {}",
                                  indices[i], pads_[k].first, rest[i].tensors.key_list()));
        }
        parts[k].push_back(part->contiguous());
      }
      for (const auto& [key, value] : pads_) rest[i].tensors.erase(key);
    }
    Batch batch = source_->collate(rest, indices);
    for (size_t k = 0; k < pads_.size(); ++k) {
      add_padded(pads_[k].first, pads_[k].second, parts[k], indices, batch);
    }
    return batch;
  }

 private:
  void add_padded(const std::string& key, double value, const std::vector<at::Tensor>& parts,
                  const std::vector<int64_t>& indices, Batch& batch) const {
    const at::Tensor& first = parts.front();
    std::vector<int64_t> sizes(static_cast<size_t>(first.dim()));
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor& part = parts[i];
      if (part.dim() == 0 || part.dim() != first.dim() ||
          part.scalar_type() != first.scalar_type() || !part.device().is_cpu()) {
        throw Error(fmt::format(
            "examples {} and {} cannot be padded to one size: \"{}\" is {} in "
            "the first and {} in the second",
            indices[0], indices[i], key, describe_tensor(first), describe_tensor(part)));
      }
      for (size_t d = 0; d < sizes.size(); ++d) {
        sizes[d] = std::max(sizes[d], part.size(static_cast<int64_t>(d)));
      }
    }
    if (!at::isFloatingType(first.scalar_type()) && value != std::floor(value)) {
      throw Error(fmt::format("\"{}\" is {} and cannot be padded with {}", key,
                              describe_tensor(first), value));
    }
    sizes[0] = (sizes[0] + multiple_ - 1) / multiple_ * multiple_;
    set(key, padded(parts, sizes, value), batch);
    const auto count = static_cast<int64_t>(parts.size());
    at::Tensor lengths = at::empty({count}, at::kLong);
    auto* length = lengths.mutable_data_ptr<int64_t>();
    for (const auto& part : parts) *length++ = part.size(0);
    set(key + "_length", lengths, batch);
    if (!has_mask_) return;
    at::Tensor mask = at::empty({count, sizes[0]}, at::kBool);
    auto* row = mask.mutable_data_ptr<bool>();
    for (const auto& part : parts) {
      std::fill(row, row + part.size(0), true);
      std::fill(row + part.size(0), row + sizes[0], false);
      row += sizes[0];
    }
    set(key + "_mask", mask, batch);
  }

  static void set(const std::string& key, at::Tensor tensor, Batch& batch) {
    if (batch.contains(key)) {
      throw Error(fmt::format("the examples have \"{}\" already, which Padded would add", key));
    }
    batch.set(key, std::move(tensor));
  }

  static at::Tensor padded(const std::vector<at::Tensor>& parts, const std::vector<int64_t>& sizes,
                           double value) {
    std::vector<int64_t> all = {static_cast<int64_t>(parts.size())};
    all.insert(all.end(), sizes.begin(), sizes.end());
    at::Tensor out = at::full(all, value, parts.front().options().requires_grad(false));
    for (size_t i = 0; i < parts.size(); ++i) {
      at::Tensor row = out.select(0, static_cast<int64_t>(i));
      const at::Tensor& part = parts[i];
      // When the rows have the full size, the whole sequence is one piece of memory.
      if (part.sizes().slice(1) == row.sizes().slice(1)) {
        if (part.numel() > 0)
          std::memcpy(row.mutable_data_ptr(), part.const_data_ptr(), part.nbytes());
        continue;
      }
      for (int64_t d = 0; d < part.dim(); ++d) row = row.narrow(d, 0, part.size(d));
      row.copy_(part);
    }
    return out;
  }

  std::unique_ptr<Dataset> source_;
  std::vector<std::pair<std::string, double>> pads_;
  bool has_mask_;
  int64_t multiple_;
};

STEPOP_REGISTER_DATASET(
    Padded, {"Another dataset, whose examples are padded to the largest of their batch."});

}  // namespace
}  // namespace stepop
