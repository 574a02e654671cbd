#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/data/stream.h"

namespace stepop {

/// The order in which the records of a stream follow each other.
struct SequenceOptions {
  uint64_t seed = 0;
  /// Whether the stream shuffles what it can, such as its files, in each pass.
  bool shuffles = false;
  /// The number of records in memory from which the next record is drawn at random; 1 keeps the
  /// stream's order.
  int64_t buffer = 1;
  /// Whether the sequence ends after the first pass; otherwise pass follows pass.
  bool is_one_pass = false;
};

/// The records of a stream, pass after pass, through a buffer that shuffles them. Each pass gives
/// each record once: the buffer runs empty at the end of the pass.
///
/// The state is small and exact: the stream's place before the oldest record that is still in the
/// buffer, and which later records are in the buffer. So a resume reads all records since the
/// oldest record again, without decoding them: about B ln B with a buffer of B, and B more.
class RecordSequence {
 public:
  /// Begins with pass `first_pass`; the first record has the number `first_number`. `stream` must
  /// outlive this object.
  RecordSequence(Stream& stream, SequenceOptions options, int64_t first_pass = 0,
                 int64_t first_number = 0);

  /// The next record; nothing when the only pass is over. Throws Error for a stream without a
  /// record, and passes on the stream's exceptions.
  std::optional<Record> next(const InterruptCheck& interrupt);

  /// The number of the record that `next` will return.
  int64_t number() const { return number_; }
  /// Changes the number of the next record.
  void set_number(int64_t number) { number_ = number; }

  /// The state from which `load` resumes. The returned function may be called later, from any
  /// thread.
  std::function<std::string()> state();

  /// Moves to the place where `state` was taken, also by a sequence with another buffer size.
  /// Throws Error for a text that is not a state, and when the stream has changed since.
  void load(const std::string& state, const InterruptCheck& interrupt);

 private:
  struct Held {
    int64_t position = 0;  ///< The record's position in its pass, in the order of reading.
    Record record;
  };
  /// The stream's state before it read the record at `position`.
  struct Mark {
    int64_t position = 0;
    std::string state;
  };

  void begin_pass();
  std::optional<Record> read(const InterruptCheck& interrupt);

  Stream& stream_;
  SequenceOptions options_;
  int64_t pass_;
  int64_t number_;
  int64_t read_ = 0;  ///< The number of records of this pass that were read.
  bool has_begun_ = false;
  bool is_at_end_ = false;  ///< All records of the pass were read.
  std::vector<Held> held_;
  std::deque<Mark> marks_;
};

}  // namespace stepop
