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

/// A view each of whose examples is one example of one of its sources: it says which, and the rest
/// - examples, batches, labels - is here. A batch is loaded as a whole. That of several
/// sources is written row by row where all of them can; else gathered from each and put together,
/// where they can gather.
class IndexView : public Dataset, public RowWriter {
 public:
  Example get(int64_t index, Random& random) const final;
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const final;
  /// Nothing unless all sources write rows, and these are alike.
  std::optional<BatchRows> rows_for(int64_t count) const final;
  void write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const final;
  at::Tensor labels(std::string_view key) const override;
  std::vector<std::string> label_keys() const override;
  std::string notice() const override { return notices_of(sources_); }
  /// The first source's.
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const final;

 protected:
  /// Where an example comes from.
  struct Place {
    size_t source;
    int64_t index;  ///< In that source.
  };

  /// With a `source_key`, examples and labels have under it which source they come from, int64,
  /// counted from 0.
  explicit IndexView(std::vector<Source> sources, std::string source_key = "");

  /// For 0 <= index < size(). Called by several threads at once, for every example.
  virtual Place place_of(int64_t index) const = 0;

  const std::vector<Source>& sources() const { return sources_; }

 private:
  std::optional<Batch> gather(std::span<const int64_t> indices, std::span<Random> randoms) const;
  Batch write(std::span<const int64_t> indices, std::span<Random> randoms) const;
  bool have_labels(std::string_view key) const;

  std::vector<Source> sources_;
  std::string source_key_;
  std::vector<const RowWriter*> writers_;  ///< Of the sources; empty when rows are not written.
  mutable std::atomic<bool> can_gather_ =
      true;  ///< Until it has shown that several sources cannot.
};

}  // namespace stepop
