#include "runtime/core/system/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

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

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Starts a program with the streams `out` and `err`; `group` is a flag of posix_spawn.
pid_t start(std::vector<std::string>& words, int out, int err, short group, char** environment) {
  const std::vector<char*> argv = pointers_to(words);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  // Files that libraries have open here, such as an HDF5 file with its lock, must not reach the
  // program.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // Signals that we ignore would stay ignored in the program.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGPIPE, SIGXFSZ}) sigaddset(&signals, number);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  // Our threads block all signals; a program must receive the signal that ends it.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(group | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  pid_t child = 0;
  const int failed =
      ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw Error(fmt::format("cannot run {}: {}", words[0], reason(failed)));
  return child;
}

}  // namespace

ChildResult run_child(std::vector<std::string> words, const InterruptCheck& interrupt,
                      size_t most_err) {
  ChildStream out(kMostOut);
  ChildStream err(most_err);
  Child child(start(words, out.child_end(), err.child_end(), POSIX_SPAWN_SETPGROUP, environ),
              Child::Ends::kGroupPolitely);
  out.close_child_end();
  err.close_child_end();
  // Does not wait for the end of the streams: a process that the program started may keep them
  // open.
  while (!child.has_ended()) {
    if (interrupt) interrupt();
    std::array<pollfd, 2> files{{{out.end(), POLLIN, 0}, {err.end(), POLLIN, 0}}};
    // A program that has closed both streams is about to end.
    ::poll(files.data(), files.size(), out.has_ended() && err.has_ended() ? 1 : kPollMilliseconds);
    out.read();
    err.read();
  }
  out.read();
  err.read();
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
      start(words, write_end.number(), streams_->err.child_end(), POSIX_SPAWN_SETPGROUP, environ),
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

std::unique_ptr<Child> start_self(std::vector<std::string> words, const std::string& output) {
  const OpenFile in = open_file("/dev/null", O_RDONLY, "open /dev/null");
  const OpenFile out =
      open_file(output, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, "write " + output);
  const std::vector<char*> argv = pointers_to(words);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw Error("cannot start another process: " + reason(errno));
  if (child > 0) {
    ::setpgid(child, child);  // called here too, because the child may not have called it yet
    return std::make_unique<Child>(child, Child::Ends::kGroupPolitely);
  }
  // From here on only functions that are safe while other threads hold locks.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent)
    ::_exit(128 + SIGTERM);  // the parent died before the child could
                             // notice
  for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  ::dup2(in.number(), STDIN_FILENO);
  ::dup2(out.number(), STDOUT_FILENO);
  ::dup2(out.number(), STDERR_FILENO);
  ::execv("/proc/self/exe", argv.data());  // works even if the file was replaced meanwhile
  constexpr char kText[] = "cannot start this program again\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(127);
}

std::unique_ptr<Child> start_beside(std::vector<std::string> words, const std::string& output,
                                    std::vector<std::string> environment) {
  const OpenFile out =
      open_file(output, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, "write " + output);
  // The first value of a name counts.
  std::vector<char*> all = pointers_to(environment);
  all.pop_back();
  for (char** each = environ; *each != nullptr; ++each) all.push_back(*each);
  all.push_back(nullptr);
  const pid_t child = start(words, out.number(), out.number(), POSIX_SPAWN_SETSID, all.data());
  return std::make_unique<Child>(child, Child::Ends::kByItself);
}

}  // namespace stepop
