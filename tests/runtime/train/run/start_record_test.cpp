#include "runtime/train/run/start_record.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "runtime/train/run/machine.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/run/start_recorder.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace start_record_test {

StartRecord example() {
  return {.kind = "resume",
          .time = "2026-11-21T10-00-00",
          .command = "stepop -p 'a b' -t",
          .folder = "/home/ada",
          .processes = 2,
          .launcher = "--processes",
          .code_compiler = "/usr/bin/clang++-19 clang version 19.1.7",
          .step = 230,
          .checkpoint = "train/checkpoints/model-230.safetensors",
          .made_by = build_info(c10::kCPU),
          .libraries = {{"zlib", "1.2"}},
          .environment = {{"OMP_NUM_THREADS", "2"}},
          .hidden = {"STEPOP_KEY"},
          .config_variables = {{"DATA", "/data"}, {"NOT_SET", std::nullopt}},
          .git = {{.folder = "/home/ada/p", .commit = "abc", .patch = "x.patch"}},
          .data_checksums = "size",
          .data = {{"datasets/train/path", {.path = "/data", .is_folder = true, .files = 3}}},
          .failures = {"why not"},
          .is_whole = true};
}

TEST_CASE("a record reads back as it was written, and what is none is none") {
  const std::string text = example().to_json();
  const auto read = StartRecord::from_json(text);
  REQUIRE(read);
  CHECK(read->to_json() == text);
  CHECK((read->git == example().git));
  CHECK((read->config_variables == example().config_variables));
  CHECK((read->data == example().data));
  for (const char* other : {"", "[]", "{}", R"({"kind": 1, "time": 2})", R"({"kind": "new")"}) {
    CHECK_FALSE(StartRecord::from_json(other));
  }
  StartRecord bytes = example();
  bytes.folder = "/home/\xff";
  CHECK(StartRecord::from_json(bytes.to_json()));
}

TEST_CASE("other libraries and processors than those of a start are told") {
  StartRecord start = example();
  start.machine = {{"processor", "Z80"}};
  start.build = stepop_time();
  const std::vector<std::string> changes = changes_since(start, start.made_by);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].find("zlib: it was 1.2, here it is 1.") == 0);
  CHECK(changes[1].find("processor: it was Z80, here it is ") == 0);
}

TEST_CASE("a processor is known by its model, on ARM by the numbers that Linux shows") {
  CHECK(processor_name("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\n"
                       "model name\t: AMD EPYC 7B13\n") == "AMD EPYC 7B13");
  CHECK(processor_name("processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\n"
                       "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
                       "CPU part\t: 0xd0c\n") == "ARM, implementer 0x41, part 0xd0c");
  CHECK(processor_name("processor\t: 0\n") == "");
}

TEST_CASE("of the environment only what matters is kept, and no secret") {
  ::setenv("OMP_SCHEDULE", "static", 1);
  ::setenv("STEPOP_API_KEY", "s3cret", 1);
  ::setenv("WEATHER", "fair", 1);
  std::vector<std::string> hidden;
  const auto kept = environment_that_matters(hidden);
  for (const char* name : {"OMP_SCHEDULE", "STEPOP_API_KEY", "WEATHER"}) ::unsetenv(name);
  CHECK(kept.at("OMP_SCHEDULE") == "static");
  CHECK_FALSE(kept.contains("STEPOP_API_KEY"));
  CHECK_FALSE(kept.contains("WEATHER"));
  CHECK(std::find(hidden.begin(), hidden.end(), "STEPOP_API_KEY") != hidden.end());
}

TEST_CASE("the record is there at once, and what takes time is added beside the training") {
  const ScratchFolder folder;
  const std::string stem = folder.path("train_2026-11-21T10-00-00");
  StartRecorder::Work work{.data = {{"a", folder.write("data", "1234")}},
                           .checksums = DataChecksums::kContent};
  {
    const StartRecorder recorder(stem, folder.path(), {.kind = "new", .time = "t"}, work);
    CHECK(recorder.problem() == "");
    CHECK(StartRecord::from_json(read_bytes(stem + ".json")));
  }
  const auto record = StartRecord::from_json(read_bytes(stem + ".json"));
  REQUIRE(record);
  CHECK(record->is_whole);
  CHECK(record->data.at("a").content.size() == 16);
}

TEST_CASE("a record that cannot be written is a problem, and ends nothing") {
  const StartRecorder recorder("/nowhere/train_t", "/nowhere", {.kind = "new", .time = "t"}, {});
  CHECK(recorder.problem().find("/nowhere/train_t.json") != std::string::npos);
}

TEST_CASE("a start that ends in a hurry leaves out what was not collected") {
  const ScratchFolder folder;
  for (int i = 0; i < 3000; ++i) folder.write("data/" + std::to_string(i), "1");
  {
    StartRecorder recorder(folder.path("r"), folder.path(), {.kind = "new", .time = "t"},
                           {.data = {{"a", folder.path("data")}, {"b", "/usr"}},
                            .checksums = DataChecksums::kContent});
    recorder.set_hurry([] { return true; });
  }
  const auto record = StartRecord::from_json(read_bytes(folder.path("r.json")));
  REQUIRE(record);
  CHECK_FALSE(record->is_whole);
  CHECK(record->failures == std::vector<std::string>{"the start ended before all was collected"});
}

}  // namespace start_record_test
}  // namespace stepop
