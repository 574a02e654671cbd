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

/// The data, after the tag became another one.
json data_after(LivePage& page, const std::string& tag) {
  for (int i = 0; i < 2000; ++i) {
    const HttpAnswer answer = data_of(page);
    if (answer.tag != tag) return json::parse(*answer.body);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

/// Whether the tag is the same after some looks.
bool stays(LivePage& page, const std::string& tag) {
  for (int i = 0; i < 20; ++i) {
    if (data_of(page).tag != tag) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

TEST_CASE("the page of a run has new data when the run logged, drew, or was evaluated, only then") {
  const ScratchFolder folder;
  make_run(folder, "run");
  LivePage page = page_of(folder, "run");
  std::string tag = data_of(page).tag;
  CHECK(stays(page, tag));
  append(folder.path("run/train/metrics.jsonl"), line(2));
  CHECK(data_after(page, tag)["curves"][0]["steps"] == json({1, 2}));
  tag = data_of(page).tag;
  CHECK(stays(page, tag));
  folder.write("run/train/train/log_op/input_0000002.png", "x");
  CHECK(data_after(page, tag)["pictures"][0]["title"] == "train/log_op/input");
  tag = data_of(page).tag;
  folder.write("run/eval/2026-11-21T10-00-00_a/2/scalars.json", "{\"validation/eval_op/x\": 3}");
  CHECK(data_after(page, tag)["evaluations"]["rows"].size() == 1);
  tag = data_of(page).tag;
  folder.write("run/train/process.json", R"({"state": "stopped", "host": "a", "pid": 1})");
  CHECK(data_after(page, tag)["run"]["state"] == "stopped");
  CHECK(stays(page, data_of(page).tag));
}

TEST_CASE("a page has the newest data in it, may ask for more, and has a path that is its own") {
  const ScratchFolder folder;
  make_run(folder, "run");
  LivePage page = page_of(folder, "run");
  CHECK(page.path().size() == 34);
  CHECK(page.path() != page_of(folder, "run").path());
  const std::string tag = data_of(page).tag;
  append(folder.path("run/train/metrics.jsonl"), line(7654));
  data_after(page, tag);
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
  std::string tag = data_of(page).tag;
  make_run(folder, "logs/2026-11-21T10-00-00_a");
  json data = data_after(page, tag);
  REQUIRE(data["runs"].size() == 1);
  CHECK(data["runs"][0]["label"] == "a");
  tag = data_of(page).tag;
  make_run(folder, "logs/2026-11-22T10-00-00_b");
  while (data["runs"].size() == 1) {  // a look may have come before its last file
    data = data_after(page, tag);
    tag = data_of(page).tag;
  }
  CHECK(data["runs"][1]["label"] == "b");
  std::filesystem::remove_all(folder.path("logs"));
  CHECK(data_after(page, tag)["notes"][0].get<std::string>().starts_with(
      "the runs could not be read: "));
  CHECK(stays(page, data_of(page).tag));
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
