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
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop {

/// One example of a stream as it is stored, not yet decoded.
struct Record {
  std::string name;               ///< The record's name in errors: `digits-000003.tar: 00/0017`.
  OrderedMap<std::string> parts;  ///< Bytes by name, such as `png` and `cls`.
};

/// One pass over all records of a stream.
struct StreamPass {
  int64_t number = 0;     ///< Counted from 0.
  uint64_t seed = 0;      ///< Depends on the run and the split.
  bool shuffles = false;  ///< Whether the order should differ in each pass.
};

/// Counts the records that are left out because they are damaged. Any thread may call it.
class SkippedRecords {
 public:
  /// `what` names the record and the damage.
  void add(const std::string& what);
  /// One line about all records left out, when there are more than at the last call; else empty.
  std::string news();

 private:
  std::mutex mutex_;
  int64_t count_ = 0;
  int64_t known_ = 0;
  std::string last_;
};

/// Records one after another, for data that is too large, or too far away, to be read by index. A
/// stream has no size, but its state can be saved. Only one thread at a time calls its functions,
/// except `decode` and `collate`, which several threads call, even while another thread reads.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Moves to the beginning of a pass. The shuffled order depends only on `pass`.
  virtual void begin(const StreamPass& pass) = 0;

  /// The next record of the pass, or nothing after its last record. This should be cheap: `decode`
  /// does the decoding. Calls `interrupt`, if it is not null, several times a second while it waits
  /// for data; exceptions from `interrupt` are passed on.
  virtual std::optional<Record> next(const InterruptCheck& interrupt) = 0;

  /// The place in the pass as a short text in UTF-8, such as JSON.
  virtual std::string save() const = 0;

  /// Moves to the place where `save` returned `state`, in the pass that was begun last. Throws
  /// Error when the data has changed since, so that the records would differ.
  virtual void load(const std::string& state, const InterruptCheck& interrupt) = 0;

  /// The example of a record; all randomness comes from `random`. Exceptions are reported with the
  /// record's name.
  virtual Example decode(const Record& record, Random& random) const = 0;

  /// The number of records in a pass, if the stream can find it out; else nothing.
  virtual std::optional<int64_t> count(const InterruptCheck& interrupt) {
    (void)interrupt;
    return std::nullopt;
  }

  /// The same as Dataset::collate.
  virtual Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const {
    return stepop::collate(examples, std::move(indices));
  }

  /// Sets the counter of records that `next` leaves out; null for none.
  void count_skipped(std::shared_ptr<SkippedRecords> skipped) { skipped_ = std::move(skipped); }

 protected:
  void note_skipped(const std::string& what) const {
    if (skipped_) skipped_->add(what);
  }

 private:
  std::shared_ptr<SkippedRecords> skipped_;
};

using StreamFactory = std::function<std::unique_ptr<Stream>(const Config&)>;

/// Registers a stream among the datasets; adds the parameters that all streams have.
bool register_stream(Registration registration, StreamFactory factory);

}  // namespace stepop

/// Registers a class with a constructor from its `Params`, and its part of the config if it wants
/// that. In a config, a stream is given in place of a dataset: `datasets/train`.
#define STEPOP_REGISTER_STREAM(Class, ...)                                            \
  STEPOP_CHECK_WORD(#Class);                                                          \
  [[maybe_unused]] static const bool STEPOP_CONCAT(stepop_registered_, __COUNTER__) = \
      ::stepop::register_stream(                                                      \
          {#Class, ::stepop::about_class<Class>(__VA_ARGS__), __FILE__, __LINE__},    \
          [](const ::stepop::Config& params) { return ::stepop::make_component<Class>(params); })
