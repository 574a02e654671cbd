#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/base/random.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/registry.h"
#include "runtime/data/batch.h"

namespace stepop {

/// One example of a stream as it is stored, not decoded yet.
struct Record {
  std::string name;               ///< What errors call it: `digits-000003.tar: 00/0017`.
  OrderedMap<std::string> parts;  ///< Bytes by name, such as `png` and `cls`.
};

/// One pass over all records of a stream.
struct StreamPass {
  int64_t number = 0;     ///< Counted from 0.
  uint64_t seed = 0;      ///< Of the run and the split.
  bool shuffles = false;  ///< Whether the order is to be another one in each pass.
};

/// Counts the records that were left out since they are damaged. Any thread may call it.
class SkippedRecords {
 public:
  /// `what` names the record and says what is wrong with it.
  void add(const std::string& what);
  /// One line about all of them, when there are more than at the last call; else empty.
  std::string news();

 private:
  std::mutex mutex_;
  int64_t count_ = 0;
  int64_t known_ = 0;
  std::string last_;
};

/// Records one after another, for data that is too large, or too far away, to be read by index. It
/// has no size, but a state that can be saved. One thread at a time calls everything but `decode`
/// and `collate`, which are called by several threads, also while another one reads.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Goes to the beginning of a pass. All that it shuffles depends on `pass` alone.
  virtual void begin(const StreamPass& pass) = 0;

  /// The next record of the pass, or nothing behind its last one. Cheap: decoding is for `decode`.
  /// Calls `interrupt`, if it is not null, several times a second while it waits for data; what
  /// that throws passes.
  virtual std::optional<Record> next(const InterruptCheck& interrupt) = 0;

  /// The place in the pass as a short text of UTF-8, such as JSON.
  virtual std::string save() const = 0;

  /// Goes to the place in the pass that was begun last where `save` gave `state`. Throws Error when
  /// the data has changed since, so that the records would be others.
  virtual void load(const std::string& state, const InterruptCheck& interrupt) = 0;

  /// The example of a record; all randomness comes from `random`. What it throws is reported with
  /// the record's name.
  virtual Example decode(const Record& record, Random& random) const = 0;

  /// The number of records in a pass, where the stream can find that out; else nothing.
  virtual std::optional<int64_t> count(const InterruptCheck& interrupt) {
    (void)interrupt;
    return std::nullopt;
  }

  /// As Dataset::collate.
  virtual Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const {
    return stepop::collate(examples, std::move(indices));
  }

  /// Where records are counted that `next` leaves out; null for nowhere.
  void count_skipped(std::shared_ptr<SkippedRecords> skipped) { skipped_ = std::move(skipped); }

 protected:
  void note_skipped(const std::string& what) const {
    if (skipped_) skipped_->add(what);
  }

 private:
  std::shared_ptr<SkippedRecords> skipped_;
};

using StreamFactory = std::function<std::unique_ptr<Stream>(const Config&)>;

/// Makes a stream known among the datasets; adds the parameters that all streams have.
bool register_stream(Registration registration, StreamFactory factory);

}  // namespace stepop

/// Registers a class that has a constructor from `const Config&`, its own part of the config. A
/// config names it where it names a dataset: `datasets/train`.
#define STEPOP_REGISTER_STREAM(Class, ...)                                            \
  [[maybe_unused]] static const bool STEPOP_CONCAT(stepop_registered_, __COUNTER__) = \
      ::stepop::register_stream(                                                      \
          {#Class, ::stepop::about(__VA_ARGS__), __FILE__, __LINE__},                 \
          [](const ::stepop::Config& params) { return std::make_unique<Class>(params); })
