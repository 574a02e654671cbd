#include "runtime/core/system/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>

namespace stepop {

Child::~Child() {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  if (has_ended() || ends_ == Ends::kByItself) return;
  if (ends_ == Ends::kGroupPolitely) {
    ::kill(-pid_, SIGTERM);
    const auto deadline = Clock::now() + 1s;
    while (!has_ended() && Clock::now() < deadline) ::poll(nullptr, 0, 10);
  }
  ::kill(ends_ == Ends::kGroupPolitely ? -pid_ : pid_, SIGKILL);
  while (!has_ended_ && ::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
}

bool Child::has_ended() {
  if (!has_ended_) has_ended_ = ::waitpid(pid_, &status_, WNOHANG) != 0;
  return has_ended_;
}

}  // namespace stepop
