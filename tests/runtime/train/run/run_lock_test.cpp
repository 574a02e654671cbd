#include "runtime/train/run/run_lock.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/train/run/provenance.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace run_lock_test {

RunProcess process_in(const ScratchFolder& folder) {
  return RunProcess::from_json(read_bytes(folder.path("process.json")));
}

/// Sets the time of the file to so many seconds ago.
void age(const ScratchFolder& folder, int seconds) {
  timespec times[2] = {};
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  REQUIRE(utimensat(AT_FDCWD, folder.path("process.json").c_str(), times, 0) == 0);
}

TEST_CASE("the file tells who trains, and how it ended") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  {
    RunLock lock(path, "2026-11-21T10-00-00");
    CHECK(lock.before().state == "");
    const RunProcess process = process_in(folder);
    CHECK(process.state == "running");
    CHECK(process.host == host_name());
    CHECK(process.pid == getpid());
    CHECK(process.started == "2026-11-21T10-00-00");
    lock.begin();
    lock.end("done");
    CHECK(process_in(folder).state == "done");
  }
  CHECK(process_in(folder).state == "done");
  age(folder, 500);
  const auto time = std::filesystem::last_write_time(path);
  { const RunLock lock(path, "2026-11-21T10-00-07"); }  // a start that was refused
  CHECK(process_in(folder).state == "done");
  CHECK(std::filesystem::last_write_time(path) == time);
  {
    RunLock lock(path, "2026-11-21T10-00-01");
    lock.begin();
  }  // nobody said how it ended
  CHECK(process_in(folder).state == "failed");
  {
    RunLock lock(path, "2026-11-21T10-00-02");
    CHECK(lock.before().state == "failed");
    CHECK(lock.before().started == "2026-11-21T10-00-01");
    lock.begin();
    lock.fail("\"x\" is NaN\nin step 3");
  }
  CHECK(process_in(folder).state == "failed");
  CHECK(process_in(folder).error == "\"x\" is NaN\nin step 3");
  RunLock lock(path, "2026-11-21T10-00-03");
  CHECK(process_in(folder).error.empty());
  lock.begin();
  lock.end("done");
  lock.fail("what comes after the end, such as a profile that cannot be written");
  CHECK(process_in(folder).state == "done");
  CHECK(process_in(folder).error.empty());
}

TEST_CASE("a second training is refused with the first one's host and pid") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  const RunLock lock(path, "2026-11-21T10-00-00");
  // flock is by open file, so that the same process is refused as another one would be.
  CHECK(message_of([&] { RunLock(path, "2026-11-21T10-00-01"); }) ==
        fmt::format("{}: another training of this run is running: process {} on {}, since "
                    "2026-11-21T10-00-00 (it holds the lock). Evaluations may run beside it; a "
                    "second training needs a run of its own",
                    path, getpid(), host_name()));
  CHECK(process_in(folder).state == "running");
}

TEST_CASE("a process that was killed holds nothing") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  const pid_t child = fork();
  if (child == 0) {
    const RunLock lock(path, "2026-11-21T10-00-00");
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  CHECK(process_in(folder).state == "running");
  const RunLock lock(path, "2026-11-21T10-00-01");
  CHECK(lock.before().state == "running");
  CHECK(lock.before().pid == child);
}

TEST_CASE("a process that was killed does not run, though nobody has collected it yet") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  const pid_t child = fork();
  if (child == 0) {
    const RunLock lock(path, "2026-11-21T10-00-00");
    kill(getpid(), SIGKILL);
  }
  siginfo_t ended;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(process_in(folder).pid == child);
  CHECK(read_run_status(path).state == RunState::kKilled);
  waitpid(child, nullptr, 0);
  CHECK(read_run_status(path).state == RunState::kKilled);
}

TEST_CASE("a training on another host holds the run as long as it shows life") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  const RunProcess other = {.state = "running",
                            .host = "far.away",
                            .pid = 7,
                            .started = "2026-11-21T09-00-00",
                            .boot = "x",
                            .ticks = "1"};
  folder.write("process.json", other.to_json());
  age(folder, 20);
  CHECK(message_of([&] {
          RunLock(path, "now");
        }).find("process 7 on far.away, since 2026-11-21T09-00-00 (its last heartbeat was 2") !=
        std::string::npos);
  age(folder, 100);
  const RunLock lock(path, "now");
  CHECK(lock.before().host == "far.away");
}

TEST_CASE("a training whose run another host took for itself is told, and writes nothing there") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  const RunProcess other = {.state = "running",
                            .host = "far.away",
                            .pid = 7,
                            .started = "2026-11-21T11-00-00",
                            .boot = "x",
                            .ticks = "1"};
  {
    RunLock lock(path, "2026-11-21T10-00-00", std::chrono::milliseconds(1));
    lock.begin();
    const auto beats = [&] {
      age(folder, 500);
      const auto old = std::filesystem::last_write_time(path);
      while (std::filesystem::last_write_time(path) == old) usleep(100);
    };
    beats();
    lock.check();
    folder.write("process.json", "{\"state\": \"run");  // in the midst of being written
    beats();
    lock.check();
    folder.write("process.json", other.to_json());
    std::string message;
    while (message.empty() || message == "no error") message = message_of([&] { lock.check(); });
    CHECK(message == fmt::format("{}: the run is now trained by process 7 on far.away, since "
                                 "2026-11-21T11-00-00, which saw no heartbeat of this one, "
                                 "process {} on {}, for a minute; this one ends and saves nothing "
                                 "more",
                                 path, getpid(), host_name()));
  }
  CHECK(process_in(folder).host == "far.away");
  CHECK(process_in(folder).state == "running");
}

TEST_CASE("a training whose file is removed or moved ends") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  SUBCASE("removed") {
    RunLock lock(path, "2026-11-21T10-00-00");
    lock.begin();
    lock.look_and_check();
    std::filesystem::remove(path);
    CHECK(message_of([&] {
            lock.look_and_check();
          }).starts_with(path + ": it was removed, moved or replaced while the run was trained"));
    CHECK_THROWS(lock.check());
  }
  SUBCASE("replaced by another training") {
    RunLock lock(path, "2026-11-21T10-00-00");
    lock.begin();
    std::filesystem::remove(path);
    RunLock second(path, "2026-11-21T11-00-00");
    CHECK_THROWS_AS(lock.look_and_check(), Error);
    second.look_and_check();
  }
  SUBCASE("a symbolic link leads nowhere") {
    folder.write("mine", "mine");
    std::filesystem::create_symlink(folder.path("mine"), path);
    CHECK_THROWS_AS(RunLock(path, "2026-11-21T10-00-00"), Error);
    CHECK(read_bytes(folder.path("mine")) == "mine");
  }
}

TEST_CASE("where there are no locks, the pid and its start time tell") {
  const RunProcess self = RunProcess::self("now");
  CHECK(is_alive_here(self));
  RunProcess other = self;
  other.ticks = "1";  // the pid was given to another process since
  CHECK_FALSE(is_alive_here(other));
  other = self;
  other.boot = "before the reboot";
  CHECK_FALSE(is_alive_here(other));
  other = self;
  other.pid = 0;
  CHECK_FALSE(is_alive_here(other));
}

TEST_CASE("a file that a kill left half written is nobody's") {
  const ScratchFolder folder;
  for (const char* text : {"", "{\"state\": \"runn", "[1]", "{\"state\": 7, \"pid\": \"x\"}"}) {
    CAPTURE(text);
    folder.write("process.json", text);
    const RunLock lock(folder.path("process.json"), "now");
    CHECK(lock.before().state == "");
    CHECK(process_in(folder).pid == getpid());
  }
}

TEST_CASE("a folder that cannot be written is told") {
  CHECK(message_of([] { RunLock("/nowhere/process.json", "now"); }) ==
        "cannot open /nowhere/process.json: No such file or directory");
}

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

}  // namespace run_lock_test
}  // namespace stepop
