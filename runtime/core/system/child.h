#pragma once

#include <sys/types.h>

namespace stepop {

/// A child process. The destructor ends the process if it is still running.
class Child {
 public:
  /// How the process is ended. `kGroupPolitely`: its process group, which it leads, gets a SIGTERM,
  /// and a SIGKILL after a second. `kByItself`: not at all; it continues to run.
  enum class Ends { kAtOnce, kGroupPolitely, kByItself };

  Child(pid_t pid, Ends ends) : pid_(pid), ends_(ends) {}
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Whether the process has ended; does not wait.
  bool has_ended();
  /// The status from waitpid, after `has_ended` was true.
  int status() const { return status_; }

 private:
  pid_t pid_;
  Ends ends_;
  int status_ = 0;
  bool has_ended_ = false;
};

}  // namespace stepop
