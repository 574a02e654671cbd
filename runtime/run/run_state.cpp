#include "runtime/run/run_state.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "runtime/run/start_record.h"
#include "runtime/system/read_file.h"

namespace stepop {
namespace {

bool is_alive(const RunProcess& process, const std::string& path) {
  if (process.host == host_name()) return is_alive_here(process);
  std::error_code failed;
  const auto renewed = std::filesystem::last_write_time(path, failed);
  const std::chrono::duration<double> age = std::filesystem::file_time_type::clock::now() - renewed;
  return !failed && age.count() < kStaleSeconds;
}

}  // namespace

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
  status.process = RunProcess::from_json(try_read_file(process_file).value_or(""));
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
