#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/data/views/key_parts.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// A dataset with additional labels from a table, which is another dataset. The labels of an
/// example are in the row with the same number, or in the row with the same value of a label.
class Labels : public SameOrder, public KeepsFloat64 {
 public:
  struct Params {
    Source dataset;
    Source table;
    std::string by;
    std::vector<std::string> columns;
    std::string prefix;
    bool in_examples = true;

    void declare(Parameters& p) {
      p.require("dataset", dataset, "the dataset that gets more labels");
      p.require("table", table, "a dataset with the labels, such as {class: Csv, path: ages.csv}");
      p.add("by", by,
            "label of both that says which row belongs to an example; without it the row of the "
            "same number");
      p.add("prefix", prefix, "before their keys: age becomes table/age with the prefix table");
      p.add("in_examples", in_examples, "whether examples hold them too, and not labels alone");
      std::optional<std::vector<std::string>> chosen;
      p.add("columns", chosen, "a list of those that are added; none: all");
      columns = chosen.value_or(columns);
    }
  };

  Labels(Params given, const Config& params)
      : SameOrder(std::move(given.dataset)),
        table_(std::move(given.table)),
        by_(given.by),
        prefix_(given.prefix),
        adds_to_examples_(given.in_examples),
        columns_(given.columns) {
    if (!prefix_.empty()) prefix_ += "/";
    const std::vector<std::string> known = table_->label_keys();
    for (const auto& column : columns_) {
      if (adds_to_examples_ || std::find(known.begin(), known.end(), column) != known.end()) {
        continue;
      }
      throw params.error("columns", fmt::format("{} has no label \"{}\"; its labels are: {}",
                                                table_.place(), column, list_text(known)));
    }
    const std::vector<std::string> here = source()->label_keys();
    for (const auto& key : known) {
      if (!is_wanted(key)) continue;
      if (std::find(here.begin(), here.end(), prefix_ + key) != here.end()) {
        throw params.error("table", fmt::format("both {} and the dataset have the label \"{}\": "
                                                "choose `columns`, or give a `prefix`",
                                                table_.place(), prefix_ + key));
      }
      added_.push_back(key);
    }
    if (by_.empty())
      check_sizes(params);
    else
      match(params);
  }

  Example get(int64_t index, Random& random) const override {
    Random own = split_off(random);
    Example example = source()->get(index, random);
    if (adds_to_examples_) {
      Example row = table_.get(row_of(index), own);
      remove_unwanted(row.tensors);
      remove_unwanted(row.texts);
      add_part(example, prefix_, std::move(row));
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    std::vector<Random> own;
    std::vector<Random> inner(randoms.begin(), randoms.end());
    for (Random& random : inner) own.push_back(split_off(random));
    Batch batch = source().load(indices, inner, indices);
    if (!adds_to_examples_) return batch;
    std::vector<int64_t> rows;
    for (const int64_t index : indices) rows.push_back(row_of(index));
    const Batch all = table_.load(rows, own, indices);
    OrderedMap<at::Tensor> tensors = all.tensors();
    OrderedMap<std::vector<std::string>> texts = all.texts();
    remove_unwanted(tensors);
    remove_unwanted(texts);
    add_part(batch, prefix_, Batch(std::move(tensors), std::move(texts), {}));
    return batch;
  }

  at::Tensor labels(std::string_view key) const override {
    for (const auto& added : added_) {
      if (prefix_ + added != key) continue;
      const at::Tensor labels = table_.labels(added);
      if (rows_.empty()) return labels;
      const at::Tensor rows = at::empty({static_cast<int64_t>(rows_.size())}, at::kLong);
      std::copy(rows_.begin(), rows_.end(), rows.mutable_data_ptr<int64_t>());
      return labels.index_select(0, rows);
    }
    return SameOrder::labels(key);
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys = SameOrder::label_keys();
    for (const auto& key : added_) keys.push_back(prefix_ + key);
    return keys;
  }

  bool keep_float64(std::string_view key) override {
    const bool is_of_table =
        key.starts_with(prefix_) && is_wanted(std::string(key.substr(prefix_.size())));
    if (source().keep_float64(key)) return true;
    return is_of_table && table_.keep_float64(key.substr(prefix_.size()));
  }

 private:
  bool is_wanted(const std::string& key) const {
    if (columns_.empty()) return key != by_;
    return std::find(columns_.begin(), columns_.end(), key) != columns_.end();
  }

  template <class T>
  void remove_unwanted(OrderedMap<T>& map) const {
    map.erase_if([&](const auto& entry) { return !is_wanted(entry.first); });
  }

  int64_t row_of(int64_t index) const {
    return rows_.empty() ? index : rows_[static_cast<size_t>(index)];
  }

  void check_sizes(const Config& params) const {
    if (table_.size() == size()) return;
    throw params.error(
        "table",
        fmt::format("it has {} rows, and {} has {} examples: each needs its row, or a "
                    "label of both that says which, by the key `by`",
                    with_thousands(table_.size()), source().place(), with_thousands(size())));
  }

  void match(const Config& params) {
    const std::vector<int64_t> values = read_groups(params, "by", source());
    const std::vector<int64_t> in_table = read_groups(params, "by", table_);
    std::unordered_map<int64_t, int64_t> row_of_value;
    for (size_t row = 0; row < in_table.size(); ++row) {
      const auto [place, is_new] = row_of_value.emplace(in_table[row], static_cast<int64_t>(row));
      if (is_new) continue;
      throw params.error("by", fmt::format("rows {} and {} of {} have the same \"{}\"",
                                           place->second, row, table_.place(), by_));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const auto row = row_of_value.find(values[i]);
      if (row == row_of_value.end()) {
        throw params.error("by", fmt::format("{} has no row with the \"{}\" of example {} of {}",
                                             table_.place(), by_, i, source().place()));
      }
      rows_.push_back(row->second);
    }
  }

  Source table_;
  std::string by_;
  std::string prefix_;  ///< The prefix with the slash, or empty.
  bool adds_to_examples_;
  std::vector<std::string> columns_;  ///< The labels to add; empty for all.
  std::vector<std::string> added_;    ///< The table's labels that are added.
  std::vector<int64_t> rows_;         ///< The table's row of each example; empty when the numbers
                                      ///< are equal.
};

STEPOP_REGISTER_DATASET(Labels, {"A dataset with labels from a table."});

}  // namespace
}  // namespace stepop
