#pragma once

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "runtime/core/system/file_lock.h"

namespace stepop {

/// After so many seconds without a heartbeat a process of another host counts as dead.
inline constexpr double kStaleSeconds = 60;

/// The process that trains a run, as `train/process.json` has it:
/// `{"state": "running", "host": "a", "pid": 12, "started": "2026-11-21T10-00-00", ...}`.
/// `state` becomes what the process ended with: `done`, `stopped`, `failed`; it stays `running`
/// when it was killed.
struct RunProcess {
  std::string state;
  std::string host;
  int pid = 0;
  std::string started;  ///< Local time, as runs are named.
  std::string boot;     ///< The kernel's id of the boot of that host.
  std::string ticks;    ///< When the process began, in clock ticks since that boot.

  std::string to_json() const;
  /// All empty when `text` is not what `to_json` wrote, as after a kill in the midst of writing.
  static RunProcess from_json(const std::string& text);
  static RunProcess self(const std::string& started);
};

/// Whether that very process is alive, when it is one of this host.
bool is_alive_here(const RunProcess& process);

/// What is said to a process that is kept out.
struct RunLockText {
  std::string busy = "another training of this run is running";
  std::string advice = "Evaluations may run beside it; a second training needs a run of its own";
};

/// Keeps a second training out of a run while it lives. A process that died holds nothing: on the
/// same host the kernel released its lock; where a file system knows no locks, its pid or start
/// time is gone. Of another host one knows it by the file's time, which a living process renews
/// every ten seconds: after a minute without it counts as dead.
class RunLock {
 public:
  /// `path`: the file, in a folder that exists. Throws UsageError with host and pid of a training
  /// that is running in it.
  RunLock(std::string path, const std::string& started,
          std::chrono::milliseconds heartbeat = std::chrono::seconds(10), RunLockText text = {});
  /// Without `end` before it, the state is `failed`; without `begin`, as for a start that was
  /// refused, the file becomes what it was. One that is another's by now is left alone.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// What the process before this one left; its state is empty when there was none.
  const RunProcess& before() const { return before_; }

  /// The training begins: what was there before is history.
  void begin() { has_begun_ = true; }

  /// Writes the state that stays: `done`, `stopped`, `failed`.
  void end(const std::string& state);

  /// Throws Error when the file has become that of another process, or is gone, which is looked at
  /// every heartbeat: when this one had no heartbeat for a minute, a start on another host may have
  /// taken the run for itself; where the file was removed, one of this host. It costs a look at an
  /// atomic.
  void check() const {
    if (is_lost_.load(std::memory_order_relaxed)) fail_lost();
  }
  /// The same, and looks now.
  void look_and_check() {
    look();
    check();
  }

 private:
  void stop_heartbeat();
  void look();
  void beat();
  bool is_gone() const;
  [[noreturn]] void fail_lost() const;
  void refuse(const RunProcess& other, const std::string& how_it_is_known);
  /// Returns 0 or the reason, an `errno`.
  int write(const RunProcess& process);

  std::string path_;
  RunLockText text_;
  OpenFile file_;
  bool has_begun_ = false;
  timespec time_before_ = {};  ///< When the file was written last.
  RunProcess before_;
  RunProcess self_;
  std::atomic<bool> is_lost_ = false;
  std::jthread heartbeat_;
};

/// What became of a run's last training.
enum class RunState {
  kUnknown,  ///< No readable process.json: none trained, or a version before it did.
  kRunning,
  kEnded,    ///< It came to its end.
  kStopped,  ///< By a signal or `max_time`.
  kFailed,   ///< By an error.
  kKilled,   ///< It says that it runs, and its process is gone.
};

/// `running`, `ended`, ...; `unknown`.
const char* name_of(RunState state);

/// A run's state with the process that it is known from.
struct RunStatus {
  RunState state = RunState::kUnknown;
  RunProcess process;

  /// `running vm:7354`, `killed`
  std::string text() const;
};

/// Reads `train/process.json`. Looks only: it neither takes the lock, which would turn away a
/// training that starts at this moment, nor writes. A process of this host lives when its pid and
/// start time are there; one of another host until the file was not renewed for a minute, by the
/// clock of this one.
RunStatus read_run_status(const std::string& process_file);

}  // namespace stepop
