#include "runtime/train/run/run_directory.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <set>
#include <thread>
#include <vector>

#include <filesystem>

#include "runtime/train/run/provenance.h"
#include "tests/message_of.h"
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

TEST_CASE("a run whose folder is a link to another user's is refused") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "run/configs");
  std::filesystem::create_directories(folder / "run/train");
  std::filesystem::create_directory(folder / "elsewhere");
  const std::string root = folder / "run";
  for (const std::string name : {"eval", "train/checkpoints"}) {
    const std::string link = root + "/" + name;
    std::filesystem::create_directory_symlink(folder / "elsewhere", link);
    CHECK(RunDirectory::open(root).root() == root);
    if (::geteuid() != 0) continue;  // only root can give files away
    const std::string message =
        "-p: " + link +
        ": it is a link to a folder, and one of the two belongs to the user 65534: files of yours "
        "would be written there. Put a folder of your own in its place";
    REQUIRE(::chown((folder / "elsewhere").c_str(), 65534, 65534) == 0);
    CHECK(message_of([&] { RunDirectory::open(root); }) == message);
    REQUIRE(::chown((folder / "elsewhere").c_str(), 0, 0) == 0);
    REQUIRE(::lchown(link.c_str(), 65534, 65534) == 0);
    CHECK(message_of([&] { RunDirectory::open(root); }) == message);
    std::filesystem::remove(link);
  }
}

TEST_CASE("the time is what a name of a run or an evaluation begins with") {
  CHECK(time_in("2026-11-21T10-00-00_digits") == "2026-11-21T10-00-00");
  CHECK(time_in("2026-11-21T10-00-00") == "");
  CHECK(time_in("2026-11-21T10-00-00_") == "");
  CHECK(time_in("my_training_of_today_1") == "");
  CHECK(RunDirectory::at("logs/my_training_of_today_1").run_name() == "my_training_of_today_1");
  CHECK(RunDirectory::at("logs/2026-11-21T10-00-00_a_b/").run_name() == "a_b");
}

TEST_CASE("starts of one second have times of their own, which sort as they came") {
  const ScratchFolder folder;
  std::vector<std::string> times = {time_name()};
  const RunDirectory run =
      RunDirectory::create(folder.path(), times[0], "a", "train_" + times[0] + ".yaml", "");
  for (const char* mode : {"train", "train", "eval", "eval", "train"}) {
    times.push_back(take_time(run, mode, "a: 1\n"));
    CHECK(times[times.size() - 2] < times.back());
    CHECK(read_bytes(run.config_file(mode, times.back())) == "a: 1\n");
  }
  CHECK(run.last_config() == run.config_file("train", times.back()));
  CHECK(run.is_without_training(times[3] + "_a"));
  CHECK_FALSE(run.is_without_training(times[5] + "_a"));
}

TEST_CASE("starts are named in their order, also when the clock was set back") {
  const ScratchFolder folder;
  const RunDirectory run = RunDirectory::create(folder.path(), "2036-12-31T23-59-58", "a",
                                                "train_2036-12-31T23-59-58.yaml", "");
  CHECK(take_time(run, "eval", "") == "2036-12-31T23-59-59");
  CHECK(take_time(run, "train", "") == "2037-01-01T00-00-00");
  CHECK(run.last_config() == run.config_file("train", "2037-01-01T00-00-00"));
  fs::create_directories(run.root() + "/train/superseded/2037-02-28T23-59-59");
  CHECK(take_time(run, "train", "") == "2037-03-01T00-00-00");
}

TEST_CASE("a time whose name something in the run has is taken, whatever it is") {
  const ScratchFolder folder;
  const RunDirectory run = RunDirectory::create(folder.path(), "2026-11-21T10-00-00", "a");
  fs::create_directories(run.root() + "/train/superseded/" + time_name(0));
  fs::create_directories(run.root() + "/train/superseded/" + time_name(1));
  fs::create_directories(run.root() + "/" + run.evaluations(time_name(2)));
  const std::string first_free = time_name(3);
  CHECK(take_time(run, "train", "") >= first_free);
}

TEST_CASE("a training and evaluations that start at one moment have times of their own") {
  const ScratchFolder folder;
  const RunDirectory run = RunDirectory::create(folder.path(), "2026-11-21T10-00-00", "a");
  std::vector<std::string> times(6);
  {
    std::vector<std::jthread> starts;
    for (size_t i = 0; i < times.size(); ++i) {
      starts.emplace_back([&, i] { times[i] = take_time(run, i == 0 ? "train" : "eval", ""); });
    }
  }
  CHECK(std::set<std::string>(times.begin(), times.end()).size() == times.size());
}

}  // namespace run_directory_test
}  // namespace stepop
