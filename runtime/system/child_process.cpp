#include "runtime/system/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "runtime/system/child.h"
#include "runtime/system/file_calls.h"

namespace stepop {
namespace {

constexpr size_t kMostOut = 1'000'000;
constexpr int kPollMilliseconds = 50;

std::string reason(int error) { return std::generic_category().message(error); }

/// One stream of the child, of which the end is kept.
class Stream {
 public:
  explicit Stream(size_t most) : most_(most) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + reason(errno));
    read_ = OpenFile(ends[0]);
    write_ = OpenFile(ends[1]);
    ::fcntl(read_.number(), F_SETFL, O_NONBLOCK);
  }

  int child_end() const { return write_.number(); }
  void close_child_end() { write_.close(); }
  /// -1 once all was read, which poll passes over.
  int end() const { return read_.number(); }
  bool has_ended() const { return !read_; }

  /// Takes what is there.
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

pid_t start(std::vector<std::string>& words, const Stream& out, const Stream& err) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.child_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.child_end(), STDERR_FILENO);
  // Signals that we ignore would stay ignored.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGPIPE, SIGXFSZ}) sigaddset(&signals, number);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  // Our threads let no signal through; a program must hear the one that ends it.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw Error(fmt::format("cannot run {}: {}", words[0], reason(failed)));
  return child;
}

}  // namespace

ChildResult run_child(std::vector<std::string> words, const InterruptCheck& interrupt,
                      size_t most_err) {
  Stream out(kMostOut);
  Stream err(most_err);
  Child child(start(words, out, err), Child::Ends::kGroupPolitely);
  out.close_child_end();
  err.close_child_end();
  // Not until the streams end: what the program leaves running may hold them open.
  while (!child.has_ended()) {
    if (interrupt) interrupt();
    std::array<pollfd, 2> files{{{out.end(), POLLIN, 0}, {err.end(), POLLIN, 0}}};
    // Whoever has closed both streams is about to end.
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

}  // namespace stepop
