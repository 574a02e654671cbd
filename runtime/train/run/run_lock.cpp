#include "runtime/train/run/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/system/start_thread.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace {

std::string first_line(const std::string& path) {
  const std::string text = try_read_file(path).value_or("");
  return text.substr(0, text.find('\n'));
}

/// Field 22 of /proc/<pid>/stat; empty when the process does not exist, or has ended and its parent
/// has not collected it yet.
std::string start_ticks(int pid) {
  const std::string stat = first_line(fmt::format("/proc/{}/stat", pid));
  // The program's name, in parentheses, may contain any characters.
  size_t at = stat.rfind(')');
  if (at == std::string::npos) return "";
  if (stat.compare(at, 3, ") Z") == 0 || stat.compare(at, 3, ") X") == 0) return "";
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return "";
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

bool is_same(const RunProcess& a, const RunProcess& b) {
  return a.host == b.host && a.pid == b.pid && a.boot == b.boot && a.ticks == b.ticks;
}

std::string read_all(const OpenFile& file) {
  std::string text(65536, '\0');
  const ssize_t count = ::pread(file.number(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The time since `file` was renewed. Both times come from the clock of the machine that holds the
/// folder, because clocks of different hosts differ.
double seconds_since_renewal(const OpenFile& file, const std::string& path) {
  struct stat renewed {};
  struct stat now {};
  if (fstat(file.number(), &renewed) != 0) return 0;
  const std::string probe = fmt::format("{}.{}.tmp", path, getpid());
  const OpenFile probe_file(file_calls().open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const bool is_known = probe_file && fstat(probe_file.number(), &now) == 0;
  if (probe_file) file_calls().unlink(probe.c_str());
  if (!is_known) clock_gettime(CLOCK_REALTIME, &now.st_mtim);
  return seconds_of(now.st_mtim) - seconds_of(renewed.st_mtim);
}

/// Opens the file by its name: another host's writes are visible in a file that is opened after
/// them.
RunProcess read_process(const std::string& path) {
  return RunProcess::from_json(try_read_file(path).value_or(""));
}

bool is_alive(const RunProcess& process, const std::string& path) {
  if (process.host == host_name()) return is_alive_here(process);
  std::error_code failed;
  const auto renewed = std::filesystem::last_write_time(path, failed);
  const std::chrono::duration<double> age = std::filesystem::file_time_type::clock::now() - renewed;
  return !failed && age.count() < kStaleSeconds;
}

}  // namespace

bool is_alive_here(const RunProcess& process) {
  return process.boot == first_line("/proc/sys/kernel/random/boot_id") && process.pid > 0 &&
         (kill(process.pid, 0) == 0 || errno == EPERM) && start_ticks(process.pid) == process.ticks;
}

std::string RunProcess::to_json() const {
  nlohmann::ordered_json values = {{"state", state},     {"host", host}, {"pid", pid},
                                   {"started", started}, {"boot", boot}, {"ticks", ticks}};
  if (!error.empty()) values["error"] = error;
  return write_json(values) + "\n";
}

RunProcess RunProcess::from_json(const std::string& text) {
  const auto values = try_read_json(text);
  RunProcess process;
  if (!values.is_object()) return process;
  const auto read = [&](const char* key, std::string& target) {
    if (values.contains(key) && values[key].is_string()) target = values[key].get<std::string>();
  };
  read("state", process.state);
  read("host", process.host);
  read("started", process.started);
  read("boot", process.boot);
  read("ticks", process.ticks);
  read("error", process.error);
  if (values.contains("pid") && values["pid"].is_number_integer()) {
    const auto pid = values["pid"].get<int64_t>();
    if (pid == static_cast<int>(pid)) process.pid = static_cast<int>(pid);
  }
  return process;
}

RunProcess RunProcess::self(const std::string& started) {
  return {.state = "running",
          .host = host_name(),
          .pid = getpid(),
          .started = started,
          .boot = first_line("/proc/sys/kernel/random/boot_id"),
          .ticks = start_ticks(getpid())};
}

RunLock::RunLock(std::string path, const std::string& started, std::chrono::milliseconds heartbeat,
                 RunLockText text)
    : path_(std::move(path)), text_(std::move(text)), self_(RunProcess::self(started)) {
  file_ = open_file(path_, O_RDWR | O_CREAT | O_NOFOLLOW, "open " + path_);
  const Locked locked = try_lock(file_);
  before_ = RunProcess::from_json(read_all(file_));
  struct stat status {};
  if (fstat(file_.number(), &status) == 0) time_before_ = status.st_mtim;
  if (locked == Locked::kHeld) refuse(before_, "it holds the lock");
  if (before_.state == "running") {
    if (before_.host == self_.host) {
      if (locked != Locked::kYes && is_alive_here(before_)) refuse(before_, "it runs");
    } else {
      const double age = seconds_since_renewal(file_, path_);
      if (age < kStaleSeconds) {
        refuse(before_, fmt::format("its last heartbeat was {:.0f} s ago; if it is dead, wait "
                                    "until a minute has passed",
                                    age < 0 ? 0 : age));
      }
    }
  }
  if (const int reason = write(self_)) fail_file("write " + path_, reason);
  try {
    heartbeat_ = std::jthread([this, heartbeat](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any changed;
      std::unique_lock lock(mutex);
      while (!changed.wait_for(lock, stop, heartbeat, [&] { return stop.stop_requested(); }))
        beat();
    });
  } catch (const std::system_error& error) {
    fail_thread("shows that this training runs", error);
  }
}

RunLock::~RunLock() {
  if (has_begun_) {
    if (self_.state == "running") end("failed");
  } else {
    stop_heartbeat();
    beat();
    if (!is_lost_) write(before_);
    const timespec times[2] = {time_before_, time_before_};
    if (!is_lost_) futimens(file_.number(), times);
  }
}

/// Whether the path no longer leads to the locked file.
bool RunLock::is_gone() const {
  struct stat ours {};
  struct stat named {};
  if (fstat(file_.number(), &ours) != 0) return false;
  if (::stat(path_.c_str(), &named) != 0) return errno == ENOENT || errno == ENOTDIR;
  return named.st_dev != ours.st_dev || named.st_ino != ours.st_ino;
}

void RunLock::look() {
  const RunProcess process = read_process(path_);
  // A file that is being written says nothing.
  if (!process.state.empty() && !is_same(process, self_)) is_lost_ = true;
  if (is_gone()) is_lost_ = true;
}

void RunLock::beat() {
  look();
  if (!is_lost_) futimens(file_.number(), nullptr);
}

void RunLock::fail_lost() const {
  const RunProcess process = read_process(path_);
  if (process.state.empty() || is_same(process, self_)) {
    throw Error(fmt::format(
        "{}: it was removed, moved or replaced while the run was trained, so another training may "
        "have begun: this one ends and saves nothing more",
        path_));
  }
  throw Error(
      fmt::format("{}: the run is now trained by process {} on {}, since {}, which saw no "
                  "heartbeat of this one, "
                  "process {} on {}, for a minute; this one ends and saves nothing more",
                  path_, process.pid, process.host, process.started, self_.pid, self_.host));
}

void RunLock::stop_heartbeat() {
  if (!heartbeat_.joinable()) return;
  heartbeat_.request_stop();
  heartbeat_.join();
}

void RunLock::end(const std::string& state) {
  stop_heartbeat();
  beat();
  self_.state = state;
  if (!is_lost_) write(self_);  // the end of the process is visible without it
}

void RunLock::fail(const std::string& error) {
  if (self_.state != "running") return;
  constexpr size_t kMostBytes = 8000;
  self_.error = shortened(error, kMostBytes, "\n... (cut)");
  end("failed");
}

void RunLock::refuse(const RunProcess& other, const std::string& how_it_is_known) {
  throw UsageError(fmt::format(
      "{}: {}: process {} on {}, since {} ({}). {}", path_, text_.busy,
      other.pid > 0 ? std::to_string(other.pid) : "?", other.host.empty() ? "?" : other.host,
      other.started.empty() ? "?" : other.started, how_it_is_known, text_.advice));
}

int RunLock::write(const RunProcess& process) {
  // Written in place, because the lock belongs to this very file.
  const std::string text = process.to_json();
  size_t written = 0;
  if (::lseek(file_.number(), 0, SEEK_SET) != 0) return errno;
  if (const int reason = write_all(file_, text, written)) return reason;
  return file_calls().ftruncate(file_.number(), static_cast<off_t>(text.size())) == 0 ? 0 : errno;
}

const char* name_of(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return "running";
    case RunState::kEnded:
      return "ended";
    case RunState::kStopped:
      return "stopped";
    case RunState::kFailed:
      return "failed";
    case RunState::kKilled:
      return "killed";
    case RunState::kUnknown:
      break;
  }
  return "unknown";
}

std::string RunStatus::text() const {
  if (state != RunState::kRunning) return name_of(state);
  return fmt::format("running {}:{}", process.host.empty() ? "?" : process.host, process.pid);
}

RunStatus read_run_status(const std::string& process_file) {
  RunStatus status;
  status.process = read_process(process_file);
  const std::string& state = status.process.state;
  if (state == "running") {
    status.state = is_alive(status.process, process_file) ? RunState::kRunning : RunState::kKilled;
  } else if (state == "done") {
    status.state = RunState::kEnded;
  } else if (state == "stopped") {
    status.state = RunState::kStopped;
  } else if (state == "failed") {
    status.state = RunState::kFailed;
  }
  return status;
}

}  // namespace stepop
