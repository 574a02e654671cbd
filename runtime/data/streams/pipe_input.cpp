#include "runtime/data/streams/pipe_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "runtime/core/programs/child_process.h"
#include "runtime/core/system/start_thread.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWaitMilliseconds = 50;
constexpr size_t kPieceBytes = 1 << 18;
constexpr size_t kMostErrorText = 2000;

/// How a command failed; empty when it did not.
std::string failure_text(const ChildResult& result) {
  std::string text;
  if (result.signal != 0) {
    text = fmt::format("it was ended by signal {}", result.signal);
  } else if (result.exit_code != 0) {
    text = fmt::format("it ended with status {}", result.exit_code);
  } else {
    return "";
  }
  std::string printed =
      result.err.substr(result.err.size() - std::min(result.err.size(), kMostErrorText));
  while (!printed.empty() && (printed.back() == '\n' || printed.back() == ' ')) printed.pop_back();
  return text + (printed.empty() ? " and printed no reason" : ": " + printed);
}

}  // namespace

PipeInput::PipeInput(const std::string& command, Options options)
    : options_(options),
      thread_(start_thread("reads what a command prints", [this, command] { run(command); })) {}

PipeInput::~PipeInput() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool PipeInput::has_all() {
  const std::lock_guard lock(mutex_);
  return has_ended_ && failure_.empty();
}

void PipeInput::run(const std::string& command) {
  std::string failure;
  try {
    OutputOfChild child({"/bin/sh", "-c", command});
    auto last = Clock::now();
    const auto is_late = [&] {
      return std::chrono::duration<double>(Clock::now() - last).count() > options_.timeout;
    };
    std::string piece(kPieceBytes, '\0');
    while (!child.has_closed()) {
      {
        std::unique_lock lock(mutex_);
        const auto begin = Clock::now();
        changed_.wait(lock, [&] { return is_stopping_ || waiting_ < options_.read_ahead; });
        if (is_stopping_) return;
        last += Clock::now() - begin;  // the time that the command waited for this reader does not
                                       // count as a hang
      }
      const size_t count = child.read(piece.data(), piece.size(), kWaitMilliseconds);
      if (count > 0) {
        last = Clock::now();
        const std::lock_guard lock(mutex_);
        pieces_.emplace_back(piece.data(), count);
        waiting_ += count;
        changed_.notify_all();
      } else if (is_late()) {
        break;
      }
    }
    std::optional<ChildResult> result;
    while (!(result = child.result(kWaitMilliseconds)) && !is_late()) {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
    }
    failure = result ? failure_text(*result)
                     : fmt::format("it gave no byte for {:g} s", options_.timeout);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  has_ended_ = true;
  changed_.notify_all();
}

size_t PipeInput::read(char* target, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (begin_ == piece_.size()) {
      std::unique_lock lock(mutex_);
      const auto has_come = [&] { return has_ended_ || !pieces_.empty(); };
      while (!changed_.wait_for(lock, std::chrono::milliseconds(kWaitMilliseconds), has_come)) {
        if (interrupt_ != nullptr && *interrupt_) (*interrupt_)();
      }
      if (pieces_.empty()) {
        if (!failure_.empty()) throw PipeFailed(failure_);
        break;
      }
      piece_ = std::move(pieces_.front());
      pieces_.pop_front();
      waiting_ -= piece_.size();
      begin_ = 0;
      changed_.notify_all();
    }
    const size_t count = std::min(size - done, piece_.size() - begin_);
    std::copy_n(piece_.data() + begin_, count, target + done);
    begin_ += count;
    done += count;
  }
  return done;
}

}  // namespace stepop
