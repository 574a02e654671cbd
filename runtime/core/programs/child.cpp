#include "runtime/core/programs/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>

namespace stepop {

namespace {

enum class Life { kRuns, kIsOver, kIsGone };

/// The process stays a zombie, so that its number, which is that of its group, is not given to
/// another one. kIsGone: somebody else has waited for it.
Life life_of(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    return Life::kIsGone;
  }
  return info.si_pid != 0 ? Life::kIsOver : Life::kRuns;
}

}  // namespace

Child::~Child() {
  if (has_ended_ || ends_ == Ends::kByItself || life_of(pid_) == Life::kIsGone) return;
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
  while (!has_ended() || ::kill(-pid_, 0) == 0) {
    if (Clock::now() >= deadline) {
      ::kill(-pid_, SIGKILL);
      return;
    }
    ::poll(nullptr, 0, 10);
  }
}

bool Child::is_over() const { return has_ended_ || life_of(pid_) != Life::kRuns; }

void Child::wait(std::chrono::milliseconds most) const {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + most;
  while (!is_over() && Clock::now() < deadline) ::poll(nullptr, 0, 5);
}

bool Child::has_ended() {
  if (!has_ended_) has_ended_ = ::waitpid(pid_, &status_, WNOHANG) != 0;
  return has_ended_;
}

}  // namespace stepop
