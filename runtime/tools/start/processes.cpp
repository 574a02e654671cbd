#include "runtime/tools/start/processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <system_error>
#include <thread>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/programs/spawn.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/read_file.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

/// After one process failed, the others end within this time; rank 0 may still save something.
constexpr std::chrono::seconds kEndWithin{90};
/// The same during the rendezvous: nothing has to be saved, but a process may still print an error.
constexpr std::chrono::seconds kEndMeetingWithin{2};
/// The number of a pipe that each process keeps open until it has met the others.
constexpr const char* kMeeting = "STEPOP_MEETING";

int number_of(const std::string& text) {
  const int64_t number = list_index(text);
  if (number >= 1 && number <= kMostProcesses) return static_cast<int>(number);
  throw UsageError(fmt::format("--processes: expected a number from 1 to {}, found \"{}\"",
                               kMostProcesses, text));
}

/// Processes of one machine meet at 127.0.0.1, which a namespace of the network can lack. Without
/// this check each of them would try for half a minute.
void check_loopback(const sockaddr_in& address) {
  const OpenFile socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto* there = reinterpret_cast<const sockaddr*>(&address);
  if (socket && ::connect(socket.number(), there, sizeof(address)) == 0) return;
  throw Error(
      fmt::format("--processes: processes cannot reach each other at 127.0.0.1: {}; `ip "
                  "link set lo up` turns the loopback on",
                  std::generic_category().message(errno)));
}

/// A port on which no process listens at this moment.
int free_port() {
  const OpenFile socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (!socket || ::bind(socket.number(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw Error("--processes: no port of this machine can be taken");
  }
  check_loopback(address);
  return ntohs(address.sin_port);
}

/// Whether SIGSTOP or a terminal stopped the process.
bool is_stopped(pid_t process) {
  const std::string stat =
      try_read_file(fmt::format("/proc/{}/stat", process), 10'000).value_or("");
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.compare(name_end + 2, 1, "T") == 0;
}

/// 128 random bits, which nobody can guess.
std::string new_secret() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

std::vector<std::string> own_words() {
  std::vector<std::string> words;
  std::string word;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) throw Error("--processes: /proc/self/cmdline cannot be read");
  for (int letter; (letter = std::fgetc(file)) != EOF;) {
    if (letter != 0) {
      word += static_cast<char>(letter);
      continue;
    }
    words.push_back(std::move(word));
    word.clear();
  }
  std::fclose(file);
  return words;
}

std::vector<std::vector<std::string>> places_of_processes(int count) {
  std::vector<std::vector<std::string>> places;
  const int port = free_port();
  const std::string secret = new_secret();
  for (int rank = 0; rank < count; ++rank) {
    places.push_back({fmt::format("STEPOP_PROCESSES={}", count), fmt::format("RANK={}", rank),
                      fmt::format("LOCAL_RANK={}", rank), fmt::format("WORLD_SIZE={}", count),
                      fmt::format("LOCAL_WORLD_SIZE={}", count), "MASTER_ADDR=127.0.0.1",
                      fmt::format("MASTER_PORT={}", port),
                      fmt::format("STEPOP_SECRET={}", secret)});
  }
  return places;
}

void say_met() {
  const auto meeting = environment_variable(kMeeting);
  if (!meeting) return;
  ::close(std::atoi(meeting->c_str()));
  ::unsetenv(kMeeting);
}

namespace {

/// The processes of one training, until all have ended.
class ProcessGroup {
 public:
  /// Starts `count` processes with the words of this one. They are to meet within `timeout`
  /// seconds.
  ProcessGroup(int count, double timeout) : timeout_(timeout), running_(count) {
    const std::vector<std::string> words = own_words();
    std::fflush(nullptr);
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
      throw Error("--processes: no pipe can be made");
    }
    meeting_ = OpenFile(pipe[0]);
    const OpenFile held(pipe[1]);
    ::fcntl(held.number(), F_SETFD, 0);
    for (auto& place : places_of_processes(count)) {
      place.push_back(fmt::format("{}={}", kMeeting, held.number()));
      // In its own process group, the process gets Ctrl-C only once, through this one. If this one
      // dies, the process saves and ends.
      children_.push_back({.process = spawn({.words = words,
                                             .is_this_program = true,
                                             .environment = std::move(place),
                                             .in = STDIN_FILENO,
                                             .keeps_files = true,
                                             .signal_when_we_die = SIGTERM})});
    }
  }

  /// Returns the exit code of the first process that failed, or 0.
  int wait() {
    while (running_ > 0) {
      pass_on_signal();
      if (failed_) {
        end_those_that_hang(*failed_);
      } else {
        end_those_that_are_stopped();
      }
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended > 0) {
        take_ended(ended, status);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    return exit_code_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Child {
    pid_t process = 0;
    bool is_over = false;
    std::string ended_for = {};                     ///< Why this program killed it.
    std::optional<Clock::time_point> stopped = {};  ///< When it was first seen stopped.
  };

  bool have_met() const {
    char none = 0;
    return ::read(meeting_.number(), &none, 1) == 0;  // no process holds the pipe open
  }

  static void end(Child& child, std::string reason) {
    child.ended_for = std::move(reason);
    ::kill(child.process, SIGKILL);
  }

  void pass_on_signal() {
    const int signal = SignalGuard::received();
    if (signal == passed_on_) return;
    passed_on_ = signal;
    for (const Child& child : children_) {
      if (!child.is_over) ::kill(child.process, signal);
    }
  }

  /// Before all have met, the others would wait for a stopped one, and nothing else would end that.
  void end_those_that_are_stopped() {
    for (Child& child : children_) {
      if (child.is_over || !child.ended_for.empty() || have_met()) continue;
      const auto now = Clock::now();
      if (!is_stopped(child.process)) {
        child.stopped.reset();
      } else if (!child.stopped) {
        child.stopped = now;
      } else if (std::chrono::duration<double>(now - *child.stopped).count() > timeout_) {
        end(child, fmt::format("it was stopped for {} seconds before all were there",
                               short_number(timeout_)));
      }
    }
  }

  /// A process that hangs must not delay the end after another one failed.
  void end_those_that_hang(Clock::time_point failed) {
    for (Child& child : children_) {
      if (child.is_over || !child.ended_for.empty()) continue;
      const auto waited = Clock::now() - failed;
      if (is_stopped(child.process)) {
        end(child, "it was stopped, and another one had failed");
      } else if (waited > kEndMeetingWithin && !have_met()) {
        end(child, "another one had failed before all were there");
      } else if (waited > kEndWithin) {
        end(child, fmt::format("it had not ended {} seconds after another one failed",
                               kEndWithin.count()));
      }
    }
  }

  void take_ended(pid_t ended, int status) {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      Child& child = children_[rank];
      if (child.process != ended) continue;
      child.is_over = true;
      --running_;
      const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (exit_code_ == 0) exit_code_ = code;
      if (code != 0 && !failed_) failed_ = Clock::now();
      if (!child.ended_for.empty()) {
        fmt::print(stderr, "stepop: rank {}, process {}, was ended: {}\n", rank, ended,
                   child.ended_for);
      } else if (WIFSIGNALED(status)) {
        fmt::print(stderr, "stepop: rank {}, process {}, was ended by {}\n", rank, ended,
                   signal_name(WTERMSIG(status)));
      }
    }
  }

  double timeout_;
  OpenFile meeting_;  ///< Ends when each process has closed its other end.
  std::vector<Child> children_;
  int running_;
  int exit_code_ = 0;
  int passed_on_ = 0;
  std::optional<Clock::time_point> failed_;  ///< The time of the first failure.
};

}  // namespace

int run_processes(const Arguments& arguments, double timeout) {
  const int count = number_of(*arguments.processes);
  if (!World::can_join() && count > 1) {
    throw UsageError(
        "--processes: this build trains in one process: gloo's headers were not there when it was "
        "made (Debian: libgloo-dev)");
  }
  const SignalGuard signals;
  return ProcessGroup(count, timeout).wait();
}

}  // namespace stepop
