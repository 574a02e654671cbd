#include "runtime/run/start_time.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "tests/scratch_folder.h"

namespace stepop {
namespace start_time_test {

namespace fs = std::filesystem;

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

}  // namespace start_time_test
}  // namespace stepop
