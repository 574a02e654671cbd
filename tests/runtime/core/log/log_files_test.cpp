#include "runtime/core/log/log_files.h"

#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace log_files_test {

/// The names in a folder, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("images and texts become files with the step in their names") {
  const ScratchFolder folder;
  write_log_files(folder.path(), 100,
                  {.images = {{"train/log_op/deep/input", "a PNG"}},
                   .texts = {{"train/log_op/sample", "once"}}});
  CHECK(read_bytes(folder / "train/log_op/deep/input_0000100.png") == "a PNG");
  CHECK(read_bytes(folder / "train/log_op/sample_0000100.txt") == "once");
}

TEST_CASE("the first four sounds of a log become .wav files that later changes do not reach") {
  const ScratchFolder folder;
  const at::Tensor samples = at::linspace(-1, 1, 10).view({5, 2}).clone();
  UnfinishedLog log;
  add_files(log, "train/log_op", {.audio = {{"deep/voice", {samples, 16000}}}});
  CHECK(log.has_files());
  const at::Tensor third = samples.slice(0, 2, 3).clone();
  samples.zero_();
  make_pictures(log);
  write_log_files(folder.path(), 100, log.record);
  CHECK(
      names_in(folder / "train/log_op/deep/voice") ==
      std::vector<std::string>{"0_0000100.wav", "1_0000100.wav", "2_0000100.wav", "3_0000100.wav"});
  CHECK(read_bytes(folder / "train/log_op/deep/voice/2_0000100.wav") ==
        encode_wav(third, 16000).bytes);
  const auto refused = [](const at::Tensor& sound, int64_t rate) {
    return message_of([&] { check_audio({sound, rate}, "a"); });
  };
  CHECK(refused(at::zeros({4}), 8000) ==
        "a: expected a batch of sounds, floats [B, T] or [B, C, T], found float32 [4]");
  CHECK(refused({}, 8000).ends_with("found an undefined tensor"));
  CHECK(refused(at::zeros({4, 0}), 8000).ends_with("found float32 [4, 0]"));
  CHECK(refused(at::zeros({4, 9}), 0) ==
        "a: expected a rate of 1 to 1000000 samples a second, found 0");
}

TEST_CASE("histograms and curves become tables beside their pictures") {
  const ScratchFolder folder;
  write_log_files(
      folder.path(), 2,
      {.histograms = {{"train/log_op/w", histogram_of(at::tensor({0, 1, 4}), 2)}},
       .curves = {{"train/log_op/roc",
                   {at::tensor({0.0, 0.5}), at::tensor({0.25, 1.0}), "x", "true, \"positive\""}}}});
  CHECK(read_bytes(folder / "train/log_op/w_0000002.csv") == "from,to,count\n0,2,2\n2,4,1\n");
  CHECK(read_bytes(folder / "train/log_op/w_0000002.png").starts_with("\x89PNG"));
  CHECK(read_bytes(folder / "train/log_op/roc_0000002.csv") ==
        "x,\"true, \"\"positive\"\"\"\n0,0.25\n0.5,1\n");
}

TEST_CASE("a step is read back from a name, whatever stands before it") {
  const auto parsed = parse_name_with_step(name_with_step("train/log_op/a_b", 12345678));
  REQUIRE(parsed);
  CHECK(parsed->name == "train/log_op/a_b");
  CHECK(parsed->step == 12345678);
  CHECK(parse_name_with_step("input_0000100")->step == 100);
  CHECK(parse_name_with_step("_7")->name.empty());
  for (const char* other :
       {"", "input", "input_", "input_7a", "input_-7", "input_7.5", "input_99999999999999999999"}) {
    CAPTURE(other);
    CHECK_FALSE(parse_name_with_step(other));
  }
}

TEST_CASE("a name that would leave its folder or fits no file system is refused") {
  const auto check = [](const std::string& name) {
    return message_of([&] { check_file_name("the image", name); });
  };
  for (const auto& name : {std::string("input"), std::string("a/b/c"), std::string(200, 'x'),
                           std::string("..."), std::string("ä ö")}) {
    CHECK(check(name) == "no error");
  }
  const std::string rule =
      "cannot be a file: parts of its name, between slashes, have 1 to 200 bytes and are not \".\" "
      "or \"..\"";
  for (const auto& name :
       {std::string(), std::string("../../x"), std::string("/x"), std::string("a//b"),
        std::string("a/"), std::string("a/./b"), std::string(300, 'x')}) {
    CHECK(check(name) == "the image \"" + name + "\" " + rule);
  }
  CHECK(check(std::string("a\0b", 3)) != "no error");
}

}  // namespace log_files_test
}  // namespace stepop
