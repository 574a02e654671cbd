#include "runtime/run/run_state.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "runtime/run/start_record.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace run_state_test {

RunStatus status_of(const ScratchFolder& folder, const std::string& json) {
  return read_run_status(folder.write("process.json", json));
}

RunStatus status_of(const ScratchFolder& folder, const RunProcess& process) {
  return status_of(folder, process.to_json());
}

TEST_CASE("what a training ended with is its state") {
  const ScratchFolder folder;
  RunProcess process = RunProcess::self("2026-11-21T10-00-00");
  for (const auto& [written, name] : {std::pair{"done", "ended"},
                                      {"stopped", "stopped"},
                                      {"failed", "failed"},
                                      {"of a later version", "unknown"}}) {
    process.state = written;
    CHECK(status_of(folder, process).text() == name);
  }
}

TEST_CASE("a process that lives runs; one whose pid is gone, or another's, was killed") {
  const ScratchFolder folder;
  RunProcess process = RunProcess::self("2026-11-21T10-00-00");
  CHECK(status_of(folder, process).text() == fmt::format("running {}:{}", host_name(), getpid()));
  process.ticks = "1";
  CHECK(status_of(folder, process).state == RunState::kKilled);
  process = RunProcess::self("2026-11-21T10-00-00");
  process.boot = "another";
  CHECK(status_of(folder, process).text() == "killed");
}

TEST_CASE("a process that was killed is no longer alive though its parent has not noticed") {
  const ScratchFolder folder;
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string json = RunProcess::self("2026-11-21T10-00-00").to_json();
    if (::write(pipe[1], json.data(), json.size()) < 0) _exit(1);
    for (;;) ::pause();
  }
  std::string json(4096, '\0');
  json.resize(static_cast<size_t>(std::max<ssize_t>(::read(pipe[0], json.data(), json.size()), 0)));
  CHECK(status_of(folder, json).state == RunState::kRunning);
  kill(child, SIGKILL);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // it stays a zombie
  CHECK(status_of(folder, json).state == RunState::kKilled);
  waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("a process of another host lives while its file is renewed") {
  const ScratchFolder folder;
  RunProcess process = RunProcess::self("2026-11-21T10-00-00");
  process.host = "elsewhere";
  process.pid = 12;
  CHECK(status_of(folder, process).text() == "running elsewhere:12");
  const std::string path = folder / "process.json";
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(70));
  CHECK(read_run_status(path).text() == "killed");
}

TEST_CASE("without a readable file nothing is known") {
  const ScratchFolder folder;
  CHECK(read_run_status(folder / "none").text() == "unknown");
  CHECK(status_of(folder, "").text() == "unknown");
  CHECK(status_of(folder, "{\"state\": \"runn").text() == "unknown");
}

TEST_CASE("looking at a run does not keep a training out") {
  const ScratchFolder folder;
  const std::string path = folder / "process.json";
  RunLock lock(path, "2026-11-21T10-00-00");
  lock.begin();
  CHECK(read_run_status(path).state == RunState::kRunning);
  lock.end("done");
  CHECK(read_run_status(path).state == RunState::kEnded);
}

}  // namespace run_state_test
}  // namespace stepop
