#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/row_writer.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {

/// What the views are tested with. Example i holds `id`, `first` + i; `group`, i / `run`; `value`,
/// two floats; the text `name`; and `draw`, a random number, where `draws`. The labels are id and
/// group. Example `bad` cannot be read. With `gathers` batches are gathered, with `writes` rows are
/// written; with `pads` there are `tokens` of 1 to 4 numbers, to which `collate` adds zeros, up to
/// the longest.
class TestNumbers : public Dataset, public RowWriter {
 public:
  explicit TestNumbers(const Config& params)
      : size_(params.get_at_least("size", 0, 10)),
        first_(params.get("first", int64_t{0})),
        run_(params.get_at_least("run", 1, 3)),
        bad_(params.get("bad", int64_t{-1})),
        draws_(params.get("draws", false)),
        gathers_(params.get("gathers", false)),
        writes_(params.get("writes", false)),
        pads_(params.get("pads", false)),
        notice_(params.get("notice", "")) {}

  /// How many examples all of them have given.
  static inline std::atomic<int64_t> reads = 0;
  /// How many of these were written into a row of a batch.
  static inline std::atomic<int64_t> rows_written = 0;

  int64_t size() const override { return size_; }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size_);
    ++reads;
    const int64_t id = first_ + index;
    if (index == bad_) throw Error(fmt::format("n{}.png is damaged", id));
    const at::Tensor value = at::empty({2}, at::kFloat);
    value.mutable_data_ptr<float>()[0] = static_cast<float>(id);
    value.mutable_data_ptr<float>()[1] = static_cast<float>(id) + 0.5F;
    Example example{.tensors = {{"id", at::scalar_tensor(id, at::kLong)},
                                {"group", at::scalar_tensor(index / run_, at::kLong)},
                                {"value", value}},
                    .texts = {{"name", fmt::format("n{}", id)}}};
    if (draws_) example.tensors.set("draw", at::scalar_tensor(random.below(1 << 20), at::kLong));
    if (pads_) {
      const at::Tensor tokens = at::empty({id % 4 + 1}, at::kLong);
      tokens.fill_(id);
      example.tensors.set("tokens", tokens);
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    if (!gathers_) return std::nullopt;
    std::vector<Example> examples;
    for (size_t i = 0; i < indices.size(); ++i) examples.push_back(get(indices[i], randoms[i]));
    return collate(examples, {indices.begin(), indices.end()});
  }

  std::optional<BatchRows> rows_for(int64_t count) const override {
    if (!writes_ || pads_) return std::nullopt;
    BatchRows rows{.tensors = {{"id", at::empty({count}, at::kLong)},
                               {"group", at::empty({count}, at::kLong)},
                               {"value", at::empty({count, 2}, at::kFloat)}},
                   .texts = {{"name", std::vector<std::string>(static_cast<size_t>(count))}}};
    if (draws_) rows.tensors.set("draw", at::empty({count}, at::kLong));
    return rows;
  }

  void write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const override {
    Example example = get(index, random);
    ++rows_written;
    for (const auto& [key, tensor] : example.tensors) {
      rows.tensors.at(key).select(0, row).copy_(tensor);
    }
    (*rows.texts.find("name"))[static_cast<size_t>(row)] = example.texts.at("name");
  }

  at::Tensor labels(std::string_view key) const override {
    if (key != "id" && key != "group") return {};
    const at::Tensor values = at::empty({size_}, at::kLong);
    for (int64_t i = 0; i < size_; ++i) {
      values.mutable_data_ptr<int64_t>()[i] = key == "id" ? first_ + i : i / run_;
    }
    return values;
  }

  std::vector<std::string> label_keys() const override { return {"id", "group"}; }
  std::string notice() const override { return notice_; }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    if (!pads_) return stepop::collate(examples, std::move(indices));
    int64_t longest = 0;
    for (const Example& example : examples) {
      longest = std::max(longest, example.tensors.at("tokens").size(0));
    }
    std::vector<Example> padded = examples;
    for (Example& example : padded) {
      const at::Tensor tokens = example.tensors.at("tokens");
      const at::Tensor longer = at::zeros({longest}, at::kLong);
      longer.narrow(0, 0, tokens.size(0)).copy_(tokens);
      example.tensors.set("tokens", longer);
    }
    return stepop::collate(padded, std::move(indices));
  }

 private:
  int64_t size_;
  int64_t first_;
  int64_t run_;
  int64_t bad_;
  bool draws_;
  bool gathers_;
  bool writes_;
  bool pads_;
  std::string notice_;
};

/// The config of ten of them.
inline const std::string kTen = "{class: TestNumbers, size: 10}";

using Ids = std::vector<int64_t>;

/// The labels of a dataset, in its order.
inline Ids ids_of(const Dataset& dataset, const std::string& key = "id") {
  return values_of<int64_t>(dataset.labels(key));
}
inline Ids ids_of(const std::string& yaml, const std::string& key = "id") {
  return ids_of(*dataset_of(yaml), key);
}

/// What building the dataset says.
inline std::string message_for(const std::string& yaml) {
  return message_of([&] { dataset_of(yaml); });
}

}  // namespace stepop
