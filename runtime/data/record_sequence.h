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

/// How the records of a stream follow each other.
struct SequenceOptions {
  uint64_t seed = 0;
  /// Whether the stream shuffles what it can, such as its files, anew in each pass.
  bool shuffles = false;
  /// Records in memory, from which the next one is drawn at random; 1 keeps the stream's own order.
  int64_t buffer = 1;
  /// Ends behind the first pass; otherwise pass follows pass.
  bool is_one_pass = false;
};

/// The records of a stream, pass after pass, through a buffer that shuffles them. Each pass gives
/// each record once: the buffer runs empty at its end.
///
/// The state is small and exact: the stream's place before the oldest record that is still in the
/// buffer, and which of those behind it are there. So a resume reads, without decoding them, as
/// many records again as came since the oldest one: about B ln B with a buffer of B, and B more.
class RecordSequence {
 public:
  /// Begins with pass `first_pass`; the first record has the number `first_number`. `stream` must
  /// outlive this.
  RecordSequence(Stream& stream, SequenceOptions options, int64_t first_pass = 0,
                 int64_t first_number = 0);

  /// The next record; nothing when the only pass is over. Throws Error for a stream without a
  /// record, and what the stream throws.
  std::optional<Record> next(const InterruptCheck& interrupt);

  /// The number of the record that `next` will give.
  int64_t number() const { return number_; }
  /// Numbers the records from here on otherwise.
  void set_number(int64_t number) { number_ = number; }

  /// The state from which `load` goes on. What it returns may be called later, from any thread.
  std::function<std::string()> state();

  /// Goes to where `state` was taken, from a sequence with another size of the buffer too. Throws
  /// Error for a text that is no state, and when the stream has changed since.
  void load(const std::string& state, const InterruptCheck& interrupt);

 private:
  struct Held {
    int64_t position = 0;  ///< In its pass, as it was read.
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
  int64_t read_ = 0;  ///< Records of this pass that were read.
  bool has_begun_ = false;
  bool is_at_end_ = false;  ///< Of the pass: all its records were read.
  std::vector<Held> held_;
  std::deque<Mark> marks_;
};

}  // namespace stepop
