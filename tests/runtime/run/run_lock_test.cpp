#include "runtime/run/run_lock.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/run/start_record.h"
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
  const RunLock lock(path, "2026-11-21T10-00-02");
  CHECK(lock.before().state == "failed");
  CHECK(lock.before().started == "2026-11-21T10-00-01");
}

TEST_CASE("a second training is refused with the first one's host and pid") {
  const ScratchFolder folder;
  const std::string path = folder.path("process.json");
  const RunLock lock(path, "2026-11-21T10-00-00");
  // flock is by open file, so that the same process is refused as another one would be.
  CHECK(message_of([&] { RunLock(path, "2026-11-21T10-00-01"); }) ==
        fmt::format("{}: another training of this run is going on: process {} on {}, since "
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
        }).find("process 7 on far.away, since 2026-11-21T09-00-00 (it showed a sign of life 2") !=
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
                                 "2026-11-21T11-00-00, which saw no sign of life of this one, "
                                 "process {} on {}, for a minute; this one ends and saves nothing "
                                 "more",
                                 path, getpid(), host_name()));
  }
  CHECK(process_in(folder).host == "far.away");
  CHECK(process_in(folder).state == "running");
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

}  // namespace run_lock_test
}  // namespace stepop
