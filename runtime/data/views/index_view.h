#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/row_writer.h"
#include "runtime/data/views/view.h"

namespace stepop {

/// A view each of whose examples is an example of one of its sources. A derived class only gives
/// the source and the index; the examples, batches and labels are handled here. A batch is loaded
/// as a whole. A batch from several sources is written row by row if all of them can write rows;
/// otherwise a batch is gathered from each source that can gather, and the parts are put together.
class IndexView : public Dataset, public RowWriter, public KeepsFloat64 {
 public:
  Example get(int64_t index, Random& random) const final;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const final;
  /// Empty unless all sources write rows of the same form.
  std::optional<BatchRows> rows_for(int64_t count) const final;
  void write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const final;
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override;
  std::optional<SourceRows> source_rows() const override;
  std::string notice() const override { return notices_of(sources_); }
  /// Several sources keep their types, as they have to be of one form.
  bool keep_float64(std::string_view key) override {
    return sources_.size() == 1 && sources_[0].keep_float64(key);
  }
  /// Uses the first source's `collate`.
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const final;

 protected:
  /// The source of an example and its place there.
  struct Place {
    size_t source;
    int64_t index;  ///< The index in that source.
  };

  /// With a `source_key`, examples and labels hold under this key the number of their source,
  /// int64, counted from 0.
  explicit IndexView(std::vector<Source> sources, std::string source_key = "");

  /// The place of the example `index`, 0 <= index < size(). Several threads call this function at
  /// once, for every example.
  virtual Place place_of(int64_t index) const = 0;

  const std::vector<Source>& sources() const { return sources_; }

 private:
  std::optional<Batch> gather(std::span<const int64_t> indices, std::span<Random> randoms) const;
  Batch write(std::span<const int64_t> indices, std::span<Random> randoms) const;
  bool have_labels(std::string_view key) const;

  std::vector<Source> sources_;
  std::string source_key_;
  std::vector<const RowWriter*> writers_;  ///< The sources as writers; empty when rows are not
                                           ///< written.
  mutable std::atomic<bool> can_gather_ =
      true;  ///< Becomes false when batches of several sources turn out not to fit.
};

}  // namespace stepop
