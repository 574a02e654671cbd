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
#include "runtime/data/row_writer.h"

namespace stepop {

/// A dataset that a view takes its examples from, with its place in the config, such as
/// `datasets/train/dataset`. What fails in it is reported with both indices:
/// `example 17: example 42 of datasets/train/dataset: cannot read a.png`.
class Source {
 public:
  /// The dataset that the config describes at `key`.
  Source(const Config& params, std::string_view key);

  const Dataset& operator*() const { return *dataset_; }
  const Dataset* operator->() const { return dataset_.get(); }
  const std::string& place() const { return place_; }
  int64_t size() const { return dataset_->size(); }

  /// Its example at `index`; throws Error that begins with `example <index> of <place>: `.
  Example get(int64_t index, Random& random) const;

  /// The dataset itself where it writes rows, else null.
  const RowWriter* writer() const { return dynamic_cast<const RowWriter*>(dataset_.get()); }

  /// Its example at `index` as row `row`, written by its `writer`; throws as `get` does.
  void write_row(const RowWriter& writer, int64_t index, Random& random, int64_t row,
                 BatchRows& rows) const;

  /// Its `get_batch`; leaves `randoms` as they are when there is none. What fails is named as by
  /// `get`, behind the example of the view that asks: `outer` has an index for each of `indices`.
  std::optional<Batch> gather(std::span<const int64_t> indices, std::span<Random> randoms,
                              std::span<const int64_t> outer) const;

  /// The same for any dataset: by `gather`, or example by example.
  Batch load(std::span<const int64_t> indices, std::span<Random> randoms,
             std::span<const int64_t> outer) const;

  /// Its labels of that key, [size(), ...]; undefined when it does not hold them.
  at::Tensor labels(std::string_view key) const { return dataset_->labels(key); }

 private:
  std::unique_ptr<Dataset> dataset_;
  std::string place_;
};

/// One or more datasets in a list at `key`.
std::vector<Source> read_sources(const Config& params, std::string_view key);

/// What the sources have to say at the start of a run, each thing once; empty for none.
std::string notices_of(std::span<const Source> sources);

/// The values of the label that the config names at `key`, one whole number for each example of
/// `source`, equal where the label's values are. Throws UsageError, with the labels that there are,
/// when the source has no such label with one number for each example.
std::vector<int64_t> read_groups(const Config& params, std::string_view key, const Source& source);

/// The dataset of a view that changes neither the examples' number nor their order: everything that
/// is not overridden is the source's.
class SameOrder : public Dataset {
 public:
  explicit SameOrder(const Config& params) : source_(params, "dataset") {}

  int64_t size() const override { return source_.size(); }
  at::Tensor labels(std::string_view key) const override { return source_.labels(key); }
  std::vector<std::string> label_keys() const override { return source_->label_keys(); }
  std::string notice() const override { return source_->notice(); }
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return source_->collate(examples, std::move(indices));
  }

 protected:
  const Source& source() const { return source_; }

 private:
  Source source_;
};

/// Random numbers for one of several things that an example is made of: what one of them draws
/// changes nothing of the others.
inline Random split_off(Random& random) { return Random(random()); }

}  // namespace stepop
