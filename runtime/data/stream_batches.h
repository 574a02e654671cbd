#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/batch_source.h"
#include "runtime/data/record_sequence.h"
#include "runtime/data/sampler.h"
#include "runtime/data/stream_dataset.h"

namespace stepop {

/// The order of a stream's examples: their running numbers, from 0 on over all epochs. So a
/// BatchOrder gives the same facts for a stream as for a dataset: the number of batches in an
/// epoch, the size of each batch, and the random numbers of each example.
class RunningNumbers : public ComputedSampler {
 public:
  explicit RunningNumbers(int64_t per_epoch) : per_epoch_(per_epoch) {}
  int64_t length() const override { return per_epoch_; }
  std::vector<int64_t> indices(int64_t epoch, int64_t first, int64_t count) const override;

 private:
  int64_t per_epoch_;
};

/// Batches of a stream, one after another. Reading is cheap and in order; decoding is the work that
/// loaders distribute. With any number of workers, an example is decoded with the random numbers of
/// its running number.
class StreamBatches : public BatchSource {
 public:
  /// `order` gives running numbers, and must outlive this object. Without a state, the stream is
  /// read from the beginning of the first batch's epoch, and each epoch is a pass. `sequence` with
  /// `is_one_pass` is an evaluation, which leaves no records out.
  StreamBatches(const StreamDataset& dataset, const BatchOrder& order, SequenceOptions sequence,
                SourceStart start, BatchSlice slice = {});

  const std::string& name() const override { return order_.name(); }
  bool is_in_order() const override { return true; }
  TakenBatch take(int64_t number, const InterruptCheck& interrupt) override;

  /// The names of the records of the next batch, `number`. This call replaces `take`.
  std::vector<std::string> names(int64_t number, const InterruptCheck& interrupt);

 private:
  struct Work;

  void begin(const InterruptCheck& interrupt);
  std::vector<Record> read(int64_t number, const InterruptCheck& interrupt);

  const BatchOrder& order_;
  SourceStart start_;
  const BatchSlice slice_;  ///< The part of each batch that is decoded; all records are read.
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<SkippedRecords> skipped_;  ///< Null when no record may be left out.
  bool is_one_pass_;
  RecordSequence sequence_;
  bool has_begun_ = false;
};

}  // namespace stepop
