#pragma once

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "runtime/core/system/file_lock.h"

namespace stepop {

/// The number of seconds without a heartbeat after which a process of another host counts as dead.
inline constexpr double kStaleSeconds = 60;

/// The process that trains a run, as in `train/process.json`:
/// `{"state": "running", "host": "a", "pid": 12, "started": "2026-11-21T10-00-00", ...}`.
/// `state` becomes the way in which the process ended: `done`, `stopped`, `failed`. After a kill it
/// stays `running`.
struct RunProcess {
  std::string state;
  std::string host;
  int pid = 0;
  std::string started;  ///< Local time, as in names of runs.
  std::string boot;     ///< The kernel's id of the current boot of that host.
  std::string ticks;    ///< When the process began, in clock ticks since that boot.
  std::string error =
      {};  ///< Why it failed; empty for other states, and where nobody could write it.

  std::string to_json() const;
  /// All members are empty when `text` was not written by `to_json`, for example after a kill
  /// during writing.
  static RunProcess from_json(const std::string& text);
  static RunProcess self(const std::string& started);
};

/// Whether exactly this process is alive; false for another host's process.
bool is_alive_here(const RunProcess& process);

/// The texts for a process that is kept out.
struct RunLockText {
  std::string busy = "another training of this run is running";
  std::string advice = "Evaluations may run beside it; a second training needs a run of its own";
};

/// Keeps a second training out of a run during its lifetime. A dead process holds nothing: on the
/// same host the kernel released its lock, or, on a file system without locks, its pid and start
/// time no longer exist. For another host the file's time counts, which a living process renews
/// every ten seconds: after a minute without renewal the process counts as dead.
class RunLock {
 public:
  /// `path`: the file, in an existing folder. Throws UsageError with host and pid of a training
  /// that is running there.
  RunLock(std::string path, const std::string& started,
          std::chrono::milliseconds heartbeat = std::chrono::seconds(10), RunLockText text = {});
  /// Without a previous `end`, the state is `failed`. Without `begin`, as in a start that was
  /// refused, the file gets its previous content. A file that now belongs to another process stays
  /// unchanged.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// The state that the previous process left; empty when there was none.
  const RunProcess& before() const { return before_; }

  /// The training begins: the previous content is no longer needed.
  void begin() { has_begun_ = true; }

  /// Writes the final state: `done`, `stopped`, `failed`.
  void end(const std::string& state);
  /// The same for `failed`, with the reason; nothing after an `end`.
  void fail(const std::string& error);

  /// Throws Error when the file belongs to another process or is gone, which every heartbeat
  /// checks: after a minute without a heartbeat of this process, a start on another host may take
  /// over the run; after the file was removed, a start on this host may. The cost is reading an
  /// atomic.
  void check() const {
    if (is_lost_.load(std::memory_order_relaxed)) fail_lost();
  }
  /// The same, with a check at once.
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
  timespec time_before_ = {};  ///< When the file was last written.
  RunProcess before_;
  RunProcess self_;
  std::atomic<bool> is_lost_ = false;
  std::jthread heartbeat_;
};

/// How a run's last training ended.
enum class RunState {
  kUnknown,  ///< No readable process.json: no training, or one by an older version.
  kRunning,
  kEnded,    ///< It ended by itself.
  kStopped,  ///< Stopped by a signal or `max_time`.
  kFailed,   ///< Ended by an error.
  kKilled,   ///< The file says `running`, but the process is gone.
};

/// `running`, `ended`, ...; `unknown`.
const char* name_of(RunState state);

/// A run's state, and the process that has it.
struct RunStatus {
  RunState state = RunState::kUnknown;
  RunProcess process;

  /// `running vm:7354`, `killed`
  std::string text() const;
};

/// Reads `train/process.json` without writing and without taking the lock, which would turn away a
/// training that starts at this moment. A process of this host is alive when its pid and start time
/// exist; a process of another host is alive until its file was not renewed for a minute, by this
/// host's clock.
RunStatus read_run_status(const std::string& process_file);

}  // namespace stepop
