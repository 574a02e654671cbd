#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/data/class_renumberings.h"
#include "runtime/data/python/python_server.h"
#include "runtime/data/python/python_worker.h"
#include "runtime/data/stream.h"

namespace stepop {

/// An iterable dataset of Python, read by a worker of its own. The worker answers with some
/// examples at a time, and with the dataset's `state_dict` before the first of them; the place in
/// the stream is that state and the number of examples after it. Before the first example of a
/// pass, or after a return to a place, the state may still be another one: there it is that after
/// one example, and the place before it is where the request began.
///
/// A request is JSON: `{}` for further examples; `{"pass": 0, "seed": 1, "place": ...}` for those
/// from the beginning of a pass, or from a place. The answer is `R`, i64 the number of examples
/// before the state, u32 how many of them are in the answer, the state in JSON, u32 whether the
/// pass ends after these examples, u32 their number, and each example as in `example_bytes.h`;
/// state and examples have their length (u32) before them.
class PythonStream : public Stream, public StreamNotice {
 public:
  PythonStream(std::shared_ptr<PythonServer> server, ClassRenumberings classes, double timeout)
      : server_(std::move(server)), classes_(std::move(classes)), timeout_(timeout) {}

  void begin(const StreamPass& pass) override;
  std::optional<Record> next(const InterruptCheck& interrupt) override;
  std::string save() const override;
  void load(const std::string& state, const InterruptCheck& interrupt) override;
  Example decode(const Record& record, Random& random) const override;
  /// The dataset's length, if it has one.
  std::optional<int64_t> count(const InterruptCheck& interrupt) override;
  /// About its classes.
  std::string notice() const override { return classes_.notice(); }

 private:
  void receive(const InterruptCheck& interrupt);

  std::shared_ptr<PythonServer> server_;
  ClassRenumberings classes_;
  double timeout_;
  std::unique_ptr<PythonWorker> worker_;
  StreamPass pass_;
  /// In JSON: where the next request begins, when `is_moved_`, else where the last one began.
  std::string place_;
  bool is_moved_ = true;           ///< The next request begins a pass or moves to a place.
  std::string state_ = "null";     ///< The dataset's state at the last answer, in JSON.
  int64_t number_ = 0;             ///< The number of examples before the last answer.
  int64_t early_ = 0;              ///< How many examples of the last answer `state_` is after.
  int64_t given_ = 0;              ///< How many examples of the last answer `next` has returned.
  bool is_end_ = false;            ///< No answer follows in this pass.
  std::deque<std::string> ahead_;  ///< The examples that `next` will return.
};

}  // namespace stepop
