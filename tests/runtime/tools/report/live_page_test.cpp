#include "runtime/tools/report/live_page.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "runtime/core/base/error.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace live_page_test {

using nlohmann::json;

std::string line(int step) {
  return fmt::format(
      "{{\"step\":{},\"epoch\":0,\"samples\":1,\"time\":1,\"train/log_op/loss\":{}}}\n", step,
      1.0 / step);
}

void append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

/// In one step, as a run writes its files.
void put(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  const std::string path = folder.path(name);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::filesystem::rename(folder.write("part", text), path);
}

void make_run(const ScratchFolder& folder, const std::string& name) {
  folder.write(name + "/configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  folder.write(name + "/train/metrics.jsonl", line(1));
}

LivePage::Options at_once(bool is_comparison = false) {
  return {.is_comparison = is_comparison, .pause = std::chrono::seconds(0), .rest = 0};
}

LivePage page_of(const ScratchFolder& folder, const std::string& name) {
  return LivePage([run = RunDirectory::at(folder.path(name))] { return std::vector{run}; },
                  at_once());
}

HttpAnswer data_of(LivePage& page) { return page.answer({.path = page.path() + "data"}); }

/// The data once they are so. A look may come between two steps of what the test does to its files;
/// the next one sees the rest.
template <class Condition>
json data_when(LivePage& page, const Condition& is_so) {
  json data;
  for (int i = 0; i < 2000; ++i) {
    data = json::parse(*data_of(page).body);
    if (is_so(data)) return data;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  FAIL("never so: " << data.dump());
  return data;
}

/// Whether the tag becomes one that is the same for some looks.
bool comes_to_rest(LivePage& page) {
  std::string tag;
  for (int looks = 0, same = 0; looks < 2000; ++looks) {
    const std::string now = data_of(page).tag;
    same = now == tag ? same + 1 : 0;
    if (same == 20) return true;
    tag = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

TEST_CASE("the page of a run has new data when the run logged, drew, or was evaluated, only then") {
  const ScratchFolder folder;
  make_run(folder, "run");
  LivePage page = page_of(folder, "run");
  CHECK(comes_to_rest(page));
  append(folder.path("run/train/metrics.jsonl"), line(2));
  data_when(page, [](json data) { return data["curves"][0]["steps"] == json({1, 2}); });
  CHECK(comes_to_rest(page));
  put(folder, "run/train/train/log_op/input_0000002.png", "x");
  const json drawn = data_when(page, [](json data) { return data["pictures"].size() == 1; });
  CHECK(drawn["pictures"][0]["title"] == "train/log_op/input");
  CHECK(comes_to_rest(page));
  put(folder, "run/eval/2026-11-21T10-00-00_a/2/scalars.json", "{\"validation/eval_op/x\": 3}");
  data_when(page, [](json data) { return data["evaluations"]["rows"].size() == 1; });
  put(folder, "run/train/process.json", R"({"state": "stopped", "host": "a", "pid": 1})");
  data_when(page, [](json data) { return data["run"]["state"] == "stopped"; });
  CHECK(comes_to_rest(page));
}

TEST_CASE("a page has the newest data in it, may ask for more, and has a path that is its own") {
  const ScratchFolder folder;
  make_run(folder, "run");
  LivePage page = page_of(folder, "run");
  CHECK(page.path().size() == 34);
  CHECK(page.path() != page_of(folder, "run").path());
  append(folder.path("run/train/metrics.jsonl"), line(7654));
  data_when(page, [](json data) { return data["curves"][0]["steps"] == json({1, 7654}); });
  const HttpAnswer answer = page.answer({.path = page.path()});
  CHECK(answer.type == "text/html; charset=utf-8");
  CHECK(answer.body->find("connect-src 'self'") != std::string::npos);
  CHECK(answer.body->find("[1,7654]") != std::string::npos);
  for (const std::string& path : {std::string("/"), std::string("/data"), page.path() + "x",
                                  page.path() + "../data", page.path() + "data/"}) {
    CAPTURE(path);
    CHECK(page.answer({.path = path}).status == 404);
  }
}

TEST_CASE("runs that begin in a folder come to its page, and those that go leave it") {
  const ScratchFolder folder;
  folder.write("logs/debug_runs/x/configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  LivePage page([logs = folder.path("logs")] { return runs_in_folder(logs); }, at_once(true));
  CHECK(json::parse(*data_of(page).body)["runs"].empty());
  const auto has_runs = [](size_t number) {
    return [number](json data) { return data["runs"].size() == number; };
  };
  make_run(folder, "logs/2026-11-21T10-00-00_a");
  CHECK(data_when(page, has_runs(1))["runs"][0]["label"] == "a");
  make_run(folder, "logs/2026-11-22T10-00-00_b");
  CHECK(data_when(page, has_runs(2))["runs"][1]["label"] == "b");
  std::filesystem::remove_all(folder.path("logs"));
  // While they are being removed there may be notes of a run whose files are gone in part.
  const json gone = data_when(page, [](json data) {
    return !data["notes"].empty() &&
           data["notes"][0].get<std::string>().starts_with("the runs could not be read: ");
  });
  CHECK_FALSE(gone.contains("runs"));
  CHECK(comes_to_rest(page));
}

TEST_CASE("a folder with very many runs shows the newest") {
  const ScratchFolder folder;
  for (int i = 0; i < 60; ++i) make_run(folder, fmt::format("{:02}", i));
  const auto runs = runs_in_folder(folder.path());
  REQUIRE(runs.size() == 50);
  CHECK(runs.front().folder_name() == "10");
  CHECK(runs.back().folder_name() == "59");
}

TEST_CASE("pictures of several runs that have one title stand beside each other") {
  const ScratchFolder folder;
  for (const std::string run : {"a", "b"}) {
    make_run(folder, run);
    for (const char* name : {"x", "y"}) {
      folder.write(fmt::format("{}/train/train/log_op/{}_0000001.png", run, name), "x");
    }
  }
  LivePage page([root = folder.path()] { return runs_in_folder(root); }, at_once(true));
  const json data = json::parse(*data_of(page).body);
  std::vector<std::string> titles;
  for (const auto& series : data["pictures"]) titles.push_back(series["title"]);
  CHECK((titles == std::vector<std::string>{"train/log_op/x (a)", "train/log_op/x (b)",
                                            "train/log_op/y (a)", "train/log_op/y (b)"}));
}

}  // namespace live_page_test
}  // namespace stepop
