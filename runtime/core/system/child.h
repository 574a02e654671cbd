#pragma once

#include <sys/types.h>

namespace stepop {

/// A child process, which is ended when it is not waited for to its end.
class Child {
 public:
  /// How it is ended. `kGroupPolitely`: its process group, which it leads, gets a SIGTERM and a
  /// second of time. `kByItself`: it is not, and lives on.
  enum class Ends { kAtOnce, kGroupPolitely, kByItself };

  Child(pid_t pid, Ends ends) : pid_(pid), ends_(ends) {}
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Whether it has ended, by now or before; does not wait.
  bool has_ended();
  /// As waitpid gives it, after `has_ended` was true.
  int status() const { return status_; }

 private:
  pid_t pid_;
  Ends ends_;
  int status_ = 0;
  bool has_ended_ = false;
};

}  // namespace stepop
