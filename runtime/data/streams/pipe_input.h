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

/// A command did not give a whole shard. The next attempt may succeed.
class PipeFailed : public Error {
 public:
  using Error::Error;
};

/// The output of a user's command: `aws s3 cp s3://bucket/a.tar -`. A separate thread reads ahead
/// of the caller.
class PipeInput : public ByteInput {
 public:
  struct Options {
    size_t read_ahead = size_t{32} << 20;  ///< The number of bytes that may be read ahead.
    double timeout = 60;  ///< Seconds without a byte after which the command counts as hung.
  };

  /// Starts `command` with a shell.
  PipeInput(const std::string& command, Options options);
  ~PipeInput() override;  ///< Ends the command if it is still running.
  PipeInput(const PipeInput&) = delete;
  PipeInput& operator=(const PipeInput&) = delete;

  /// Throws PipeFailed when the command hangs, is ended by a signal or exits with a status other
  /// than 0; the message has the end of its standard error. Exceptions from `interrupt` are passed
  /// on.
  size_t read(char* target, size_t size) override;

  /// Sets the function that `read` calls several times a second while it waits; null for none.
  void set_interrupt(const InterruptCheck* interrupt) { interrupt_ = interrupt; }

  /// Whether the command's whole output has arrived.
  bool has_all();

 private:
  void run(const std::string& command);

  const Options options_;
  const InterruptCheck* interrupt_ = nullptr;
  std::string piece_;  ///< The piece that is being returned, from `begin_` on.
  size_t begin_ = 0;

  std::mutex mutex_;  ///< Guards all later members.
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  size_t waiting_ = 0;   ///< The number of bytes in `pieces_`.
  std::string failure_;  ///< Why no more bytes will arrive.
  bool has_ended_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace stepop
