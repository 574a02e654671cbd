#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/formats/byte_input.h"

namespace stepop {

/// A command that did not give a whole shard. It may at the next attempt.
class PipeFailed : public Error {
 public:
  using Error::Error;
};

/// What a command of the user's prints: `aws s3 cp s3://bucket/a.tar -`. A thread of its own reads
/// ahead of who asks for it.
class PipeInput : public ByteInput {
 public:
  struct Options {
    size_t read_ahead = size_t{32} << 20;  ///< Bytes that wait to be asked for.
    double timeout = 60;  ///< Seconds without a byte after which the command counts as hung.
  };

  /// Starts `command` with a shell.
  PipeInput(const std::string& command, Options options);
  ~PipeInput() override;  ///< Ends the command when it still runs.
  PipeInput(const PipeInput&) = delete;
  PipeInput& operator=(const PipeInput&) = delete;

  /// Throws PipeFailed when the command ends by a signal or with another status than 0, with the
  /// end of what it printed on its standard error, and when it hangs. What `interrupt` throws
  /// passes.
  size_t read(char* target, size_t size) override;

  /// What `read` calls several times a second while it waits; null for nothing.
  void set_interrupt(const InterruptCheck* interrupt) { interrupt_ = interrupt; }

  /// Whether everything that the command prints has come.
  bool has_all();

 private:
  void run(const std::string& command);

  const Options options_;
  const InterruptCheck* interrupt_ = nullptr;
  std::string piece_;  ///< What is being given, from `begin_` on.
  size_t begin_ = 0;

  std::mutex mutex_;  ///< Of all that follows.
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  size_t waiting_ = 0;   ///< Bytes of `pieces_`.
  std::string failure_;  ///< Why no more will come.
  bool has_ended_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace stepop
