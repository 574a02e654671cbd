#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/record_sequence.h"
#include "runtime/data/stream.h"

namespace stepop {

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
/// there, or anew for one that lies before the last.
class StreamDataset : public Dataset {
 public:
  StreamDataset(const Config& params, StreamFactory factory);

  /// The number of records in a pass. Throws Error when nobody knows it.
  int64_t size() const override;
  Example get(int64_t index, Random& random) const override;
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override;

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
  std::shared_ptr<Stream> stream_;  ///< For `get`.

  mutable std::mutex mutex_;  ///< Of all that follows, and of `stream_`.
  mutable bool is_counted_ = false;
  mutable std::optional<int64_t> examples_;
  mutable std::optional<RecordSequence> sequence_;
};

}  // namespace stepop
