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

/// An example behind the last one of a stream.
class EndOfStream : public Error {
 public:
  using Error::Error;
};

/// What a config says of any stream.
struct StreamSettings {
  /// Whether a training sees the records in another order in each pass.
  bool shuffles = true;
  int64_t buffer = 1000;  ///< Records in memory, from which the next one is drawn.
  /// Whether a training leaves damaged records out.
  bool skips_damaged = false;
};

/// A stream as a dataset: what a config builds for its name. Trainings and evaluations open the
/// stream and read it in its order; for everything else, such as callbacks of an evaluation, the
/// example `index` is that of the record `index` of a pass in the stored order. It is read on to
/// there, or anew for one that lies before. Several places are kept, so that several threads that
/// each go on from index to index begin seldom.
class StreamDataset : public Dataset {
 public:
  StreamDataset(const Config& params, StreamFactory factory);

  /// The number of records in a pass. Throws Error when nobody knows it.
  int64_t size() const override;
  Example get(int64_t index, Random& random) const override;
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override;
  std::string notice() const override;

  /// The same as `size()`, as the config has it as `examples` or the stream counts it, once;
  /// nothing when neither knows it.
  std::optional<int64_t> examples() const;

  /// The stream, from its beginning.
  std::shared_ptr<Stream> open() const;

  const StreamSettings& settings() const { return settings_; }
  /// Of all that were opened.
  const std::shared_ptr<SkippedRecords>& skipped() const { return skipped_; }

 private:
  Config params_;
  StreamFactory factory_;
  StreamSettings settings_;
  std::shared_ptr<SkippedRecords> skipped_ = std::make_shared<SkippedRecords>();
  std::shared_ptr<const Stream> stream_;  ///< To decode with.

  /// A place where the stream is read on.
  struct Cursor {
    explicit Cursor(std::shared_ptr<Stream> opened)
        : stream(std::move(opened)), sequence(*stream, {.is_one_pass = true}) {}
    std::shared_ptr<Stream> stream;
    RecordSequence sequence;
    int64_t used = 0;  ///< The count of calls at its last use.
  };

  Record record(int64_t index) const;

  mutable std::mutex mutex_;  ///< Of all that follows.
  mutable bool is_counted_ = false;
  mutable double seconds_ = 0;  ///< That counting took.
  mutable std::optional<int64_t> examples_;
  mutable std::vector<std::unique_ptr<Cursor>> cursors_;
  mutable int64_t calls_ = 0;
};

}  // namespace stepop
