#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/keeps_float64.h"
#include "runtime/data/row_writer.h"

namespace stepop {

/// A dataset from which a view takes its examples, with its place in the config, such as
/// `datasets/train/dataset`. Errors from the dataset are reported with both indices: `example 17:
/// example 42 of datasets/train/dataset: cannot read a.png`.
class Source {
 public:
  Source() = default;
  /// The dataset that the config describes at `key`.
  Source(const Config& params, std::string_view key);

  const Dataset& operator*() const { return *dataset_; }
  const Dataset* operator->() const { return dataset_.get(); }
  const std::string& place() const { return place_; }
  int64_t size() const { return dataset_->size(); }

  /// The dataset's example at `index`; throws an Error that begins with `example <index> of
  /// <place>: `.
  Example get(int64_t index, Random& random) const;

  /// Asks the dataset to leave the numbers of `key` float64; false when it cannot.
  bool keep_float64(std::string_view key) { return stepop::keep_float64(*dataset_, key); }

  /// The dataset if it can write rows, else null.
  const RowWriter* writer() const { return dynamic_cast<const RowWriter*>(dataset_.get()); }

  /// Writes the example at `index` into row `row`, using `writer`; throws the same errors as `get`.
  void write_row(const RowWriter& writer, int64_t index, Random& random, int64_t row,
                 BatchRows& rows) const;

  /// Calls the dataset's `get_batch`; leaves `randoms` unchanged when it returns nothing. Errors
  /// name the example as in `get`, after the view's own example: `outer` has an index for each of
  /// `indices`.
  std::optional<Batch> gather(std::span<const int64_t> indices, std::span<Random> randoms,
                              std::span<const int64_t> outer) const;

  /// The batch of any dataset: by `gather`, or example by example.
  Batch load(std::span<const int64_t> indices, std::span<Random> randoms,
             std::span<const int64_t> outer) const;

  /// The dataset's labels for `key`, [size(), ...]; undefined when the dataset does not hold them.
  at::Tensor labels(std::string_view key) const { return dataset_->labels(key); }

 private:
  std::unique_ptr<Dataset> dataset_;
  std::string place_;
};

template <>
struct ParameterOf<Source> {
  static Source read(const Config& config, std::string_view path, const Allowed&) {
    return {config, path};
  }
  static std::string kind() { return "component dataset"; }
};

/// One or more datasets in a list.
template <>
struct ParameterOf<std::vector<Source>> {
  static std::vector<Source> read(const Config& config, std::string_view path, const Allowed&);
  static std::string kind() { return "list of component dataset"; }
};

/// The sources' notices for the start of a run, each text once; empty when there are none.
std::string notices_of(std::span<const Source> sources);

/// The groups given by the label that the config names at `key`: one whole number for each example
/// of `source`, equal where the label's values are equal. Throws UsageError with the available
/// labels when the source has no such label with one number for each example.
std::vector<int64_t> read_groups(const Config& params, std::string_view key, const Source& source);
/// Declares a label that may be missing, as `read_groups` reads it; `groups` are then empty.
void add_groups(Parameters& p, std::string_view name, const Source& source,
                std::vector<int64_t>& groups, std::string_view about);

/// The base of views that change neither the number of examples nor their order: functions that are
/// not overridden call the source.
class SameOrder : public Dataset {
 public:
  explicit SameOrder(Source source) : source_(std::move(source)) {}

  int64_t size() const override { return source_.size(); }
  at::Tensor labels(std::string_view key) const override { return source_.labels(key); }
  std::vector<std::string> label_keys() const override { return source_->label_keys(); }
  std::optional<SourceRows> source_rows() const override { return source_->source_rows(); }
  std::string notice() const override { return source_->notice(); }
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return source_->collate(examples, std::move(indices));
  }

 protected:
  const Source& source() const { return source_; }
  Source& source() { return source_; }

 private:
  Source source_;
};

/// Separate random numbers for one of several parts of an example, so that one part's draws do not
/// change the other parts.
inline Random split_off(Random& random) { return Random(random()); }

}  // namespace stepop
