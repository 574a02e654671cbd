#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/data/record_sequence.h"
#include "runtime/data/stream.h"

namespace stepop {

/// An example past the end of a stream was requested.
class EndOfStream : public Error {
 public:
  using Error::Error;
};

/// The settings that all streams share.
struct StreamSettings {
  /// Whether a training sees the records in a different order in each pass.
  bool shuffles = true;
  int64_t buffer = 1000;  ///< The number of records in memory from which the next record is drawn.
  /// Whether a training leaves damaged records out.
  bool skips_damaged = false;
  std::optional<int64_t> examples;  ///< In a pass; none: counted, where the stream can do that.

  void declare(Parameters& p);
};

/// A stream as a dataset: a config builds this class for the stream's name. Trainings and
/// evaluations open the stream and read it in its order. For everything else, such as callbacks of
/// an evaluation, the example `index` is the record `index` of a pass in the stored order. The
/// stream is read forward to this record, or from the beginning if the record lies before the
/// current place. Several places are kept, so that several threads that each read in order seldom
/// start from the beginning.
class StreamDataset : public Dataset {
 public:
  StreamDataset(const Config& params, StreamFactory factory);

  /// The number of records in a pass. Throws Error when it is unknown.
  int64_t size() const override;
  Example get(int64_t index, Random& random) const override;
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override;
  std::string notice() const override;

  /// The number of records in a pass, from the config's `examples` or, once, from the stream's
  /// count; nothing when both are missing.
  std::optional<int64_t> examples() const;

  /// Opens the stream at its beginning.
  std::shared_ptr<Stream> open() const;

  const StreamSettings& settings() const { return settings_; }
  /// The damaged records that all opened streams left out.
  const std::shared_ptr<SkippedRecords>& skipped() const { return skipped_; }

 private:
  Config params_;
  StreamFactory factory_;
  StreamSettings settings_;
  std::shared_ptr<SkippedRecords> skipped_ = std::make_shared<SkippedRecords>();
  std::shared_ptr<const Stream> stream_;  ///< Used for decoding.

  /// A place from which the stream is read.
  struct Cursor {
    explicit Cursor(std::shared_ptr<Stream> opened)
        : stream(std::move(opened)), sequence(*stream, {.is_one_pass = true}) {}
    std::shared_ptr<Stream> stream;
    RecordSequence sequence;
    int64_t used = 0;  ///< The count of calls at its last use.
  };

  Record record(int64_t index) const;

  mutable std::mutex mutex_;  ///< Guards all later members.
  mutable bool is_counted_ = false;
  mutable double seconds_ = 0;  ///< The duration of the count.
  mutable std::optional<int64_t> examples_;
  mutable std::vector<std::unique_ptr<Cursor>> cursors_;
  mutable int64_t calls_ = 0;
};

}  // namespace stepop
