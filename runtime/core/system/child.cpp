#include "runtime/core/system/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>

namespace stepop {

Child::~Child() {
  if (has_ended_ || ends_ == Ends::kByItself) return;
  if (ends_ == Ends::kGroupPolitely) {
    end_group();
  } else {
    ::kill(pid_, SIGKILL);
  }
  while (!has_ended_ && ::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
}

void Child::end_group() {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  ::kill(-pid_, SIGTERM);
  const auto deadline = Clock::now() + 1s;
  // A group is there until the last of its processes is gone.
  while ((!has_ended() || ::kill(-pid_, 0) == 0) && Clock::now() < deadline) {
    ::poll(nullptr, 0, 10);
  }
  ::kill(-pid_, SIGKILL);
}

void Child::wait(std::chrono::milliseconds most) const {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + most;
  while (!has_ended_ && Clock::now() < deadline) {
    siginfo_t info{};
    // The process stays a zombie, so that its group's number is not given to another one.
    const bool is_over =
        ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != 0;
    if (is_over) return;
    ::poll(nullptr, 0, 5);
  }
}

bool Child::has_ended() {
  if (!has_ended_) has_ended_ = ::waitpid(pid_, &status_, WNOHANG) != 0;
  return has_ended_;
}

}  // namespace stepop
