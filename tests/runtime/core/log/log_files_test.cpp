#include "runtime/core/log/log_files.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace log_files_test {

TEST_CASE("images and texts become files with the step in their names") {
  const ScratchFolder folder;
  write_log_files(folder.path(), 100,
                  {.images = {{"train/log_op/deep/input", "a PNG"}},
                   .texts = {{"train/log_op/sample", "once"}}});
  CHECK(read_bytes(folder / "train/log_op/deep/input_0000100.png") == "a PNG");
  CHECK(read_bytes(folder / "train/log_op/sample_0000100.txt") == "once");
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
