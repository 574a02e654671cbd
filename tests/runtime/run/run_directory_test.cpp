#include "runtime/run/run_directory.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/run/start_record.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace run_directory_test {

namespace fs = std::filesystem;

/// The pid of a process that has ended.
int dead_process() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

TEST_CASE(
    "what a process left that was killed while it made a run goes when the next one is made") {
  const ScratchFolder folder;
  const auto half_made = [&](const std::string& host, int pid) {
    const std::string name = fmt::format(".2026-11-21T10-00-00_a.b.{}.{}.tmp", host, pid);
    folder.write(name + "/configs/train_2026-11-21T10-00-00.yaml", "");
    return folder.path(name);
  };
  const std::string dead = half_made(host_name(), dead_process());
  const std::string alive = half_made(host_name(), getpid());
  const std::string other_host = half_made("not-" + host_name(), dead_process());
  folder.write(".hidden.tmp", "");
  RunDirectory::create(folder.path(), "2026-11-21T10-00-01", "b");
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(alive));
  CHECK(fs::exists(other_host));
  CHECK(fs::exists(folder.path(".hidden.tmp")));
}

TEST_CASE("the time is what a name of a run or an evaluation begins with") {
  CHECK(time_in("2026-11-21T10-00-00_digits") == "2026-11-21T10-00-00");
  CHECK(time_in("2026-11-21T10-00-00") == "");
  CHECK(time_in("2026-11-21T10-00-00_") == "");
  CHECK(time_in("my_training_of_today_1") == "");
  CHECK(RunDirectory::at("logs/my_training_of_today_1").run_name() == "my_training_of_today_1");
  CHECK(RunDirectory::at("logs/2026-11-21T10-00-00_a_b/").run_name() == "a_b");
}

}  // namespace run_directory_test
}  // namespace stepop
