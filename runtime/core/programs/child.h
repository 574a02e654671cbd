#pragma once

#include <sys/types.h>

#include <chrono>

namespace stepop {

/// A child process. The destructor ends the process, unless `has_ended` was true before.
class Child {
 public:
  /// How the process is ended. `kGroupPolitely`: its process group, which it leads, gets a SIGTERM,
  /// and what is left of it after a second a SIGKILL. `kByItself`: not at all; it continues to run.
  enum class Ends { kAtOnce, kGroupPolitely, kByItself };

  Child(pid_t pid, Ends ends) : pid_(pid), ends_(ends) {}
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// Whether the process has ended; does not wait.
  bool has_ended();
  /// Waits until the process has ended, at most so long. The destructor still ends the group.
  void wait(std::chrono::milliseconds most) const;
  /// The same as `has_ended`, but the destructor still ends the group.
  bool is_over() const;
  /// Ends the process and its group as `kGroupPolitely` does, before `has_ended` was true: later
  /// the group's number may be another one's.
  void end_group();
  /// The status from waitpid, after `has_ended` was true.
  int status() const { return status_; }

 private:
  pid_t pid_;
  Ends ends_;
  int status_ = 0;
  bool has_ended_ = false;
};

}  // namespace stepop
