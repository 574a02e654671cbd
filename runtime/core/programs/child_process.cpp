#include "runtime/core/programs/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/programs/spawn.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

/// One output stream of the child; only its end is kept.
class ChildStream {
 public:
  explicit ChildStream(size_t most) : most_(most) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + reason(errno));
    read_ = OpenFile(ends[0]);
    write_ = OpenFile(ends[1]);
    ::fcntl(read_.number(), F_SETFL, O_NONBLOCK);
  }

  int child_end() const { return write_.number(); }
  void close_child_end() { write_.close(); }
  /// -1 after the end of the stream; poll ignores -1
  int end() const { return read_.number(); }
  bool has_ended() const { return !read_; }

  /// Reads all available bytes.
  void read() {
    std::array<char, 65536> buffer{};
    while (read_) {
      const ssize_t count = ::read(read_.number(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) {
        read_.close();
        return;
      }
      text_.append(buffer.data(), static_cast<size_t>(count));
      if (text_.size() > 2 * most_) text_.erase(0, text_.size() - most_);
    }
  }

  std::string text() const {
    return text_.size() > most_ ? text_.substr(text_.size() - most_) : text_;
  }

 private:
  size_t most_;
  OpenFile read_;
  OpenFile write_;
  std::string text_;
};

namespace {

constexpr size_t kMostOut = 1'000'000;
constexpr size_t kMostErr = 16'000;
constexpr int kPipeBytes = 1 << 20;
constexpr int kPollMilliseconds = 50;

}  // namespace

ChildResult run_child(std::vector<std::string> words, const InterruptCheck& interrupt,
                      size_t most_err, bool ends_group) {
  ChildStream out(kMostOut);
  ChildStream err(most_err);
  Child child(spawn({.words = std::move(words), .out = out.child_end(), .err = err.child_end()}),
              Child::Ends::kGroupPolitely);
  out.close_child_end();
  err.close_child_end();
  // Does not wait for the end of the streams: a process that the program started may keep them
  // open.
  while (ends_group ? !child.is_over() : !child.has_ended()) {
    if (interrupt) interrupt();
    std::array<pollfd, 2> files{{{out.end(), POLLIN, 0}, {err.end(), POLLIN, 0}}};
    // A program that has closed both streams is about to end.
    ::poll(files.data(), files.size(), out.has_ended() && err.has_ended() ? 1 : kPollMilliseconds);
    out.read();
    err.read();
  }
  out.read();
  err.read();
  if (ends_group) child.end_group();
  const int status = child.status();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          out.text(), err.text()};
}

struct OutputOfChild::Streams {
  OpenFile out;
  ChildStream err{kMostErr};
};

OutputOfChild::OutputOfChild(std::vector<std::string> words)
    : streams_(std::make_unique<Streams>()) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + reason(errno));
  streams_->out = OpenFile(ends[0]);
  const OpenFile write_end(ends[1]);
  ::fcntl(streams_->out.number(), F_SETFL, O_NONBLOCK);
  ::fcntl(streams_->out.number(), F_SETPIPE_SZ, kPipeBytes);  // fewer wake-ups, where it is allowed
  child_ = std::make_unique<Child>(
      spawn(
          {.words = std::move(words), .out = write_end.number(), .err = streams_->err.child_end()}),
      Child::Ends::kGroupPolitely);
  streams_->err.close_child_end();
}

OutputOfChild::~OutputOfChild() = default;

bool OutputOfChild::has_closed() const { return !streams_->out; }

size_t OutputOfChild::read(char* target, size_t size, int milliseconds) {
  if (has_closed()) return 0;
  std::array<pollfd, 2> files{
      {{streams_->out.number(), POLLIN, 0}, {streams_->err.end(), POLLIN, 0}}};
  ::poll(files.data(), files.size(), milliseconds);
  streams_->err.read();
  ssize_t count = -1;
  while ((count = ::read(streams_->out.number(), target, size)) < 0 && errno == EINTR) {
  }
  if (count > 0) return static_cast<size_t>(count);
  if (count == 0 || errno != EAGAIN) streams_->out.close();
  return 0;
}

std::optional<ChildResult> OutputOfChild::result(int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (!child_->has_ended()) {
    if (Clock::now() >= deadline) return std::nullopt;
    streams_->err.read();
    ::poll(nullptr, 0, 1);
  }
  streams_->err.read();
  const int status = child_->status();
  return ChildResult{WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                     WIFSIGNALED(status) ? WTERMSIG(status) : 0, "", streams_->err.text()};
}

std::unique_ptr<Child> start_self(std::vector<std::string> words, const std::string& output,
                                  std::vector<std::string> environment,
                                  const std::string& launcher) {
  const OpenFile out =
      open_file(output, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, "write " + output);
  const bool is_direct = launcher.empty();
  if (!is_direct) {
    words.front() = std::filesystem::read_symlink("/proc/self/exe").string();
    words.insert(words.begin(), {"sh", "-c", "exec " + launcher + " \"$@\"", "sh"});
  }
  return std::make_unique<Child>(spawn({.words = std::move(words),
                                        .is_this_program = is_direct,
                                        .environment = std::move(environment),
                                        .out = out.number(),
                                        .err = out.number(),
                                        .signal_when_we_die = is_direct ? SIGTERM : 0}),
                                 Child::Ends::kGroupPolitely);
}

std::unique_ptr<Child> start_beside(std::vector<std::string> words, const std::string& output,
                                    std::vector<std::string> environment) {
  const OpenFile out =
      open_file(output, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, "write " + output);
  return std::make_unique<Child>(spawn({.words = std::move(words),
                                        .environment = std::move(environment),
                                        .out = out.number(),
                                        .err = out.number(),
                                        .has_own_session = true}),
                                 Child::Ends::kByItself);
}

}  // namespace stepop
