#include "eval_out/callbacks/evaluation_callbacks.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/write/eval_writer.h"
#include "runtime/config/yaml_reader.h"
#include "runtime/pictures/image_file.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace evaluation_callbacks_test {

Logs test_picture(const CallbackArguments&) {
  return {.scalars = {{"half", 0.5}}, .images = {{"seen/first", at::zeros({3, 1, 4, 4})}}};
}
STEPOP_REGISTER_CALLBACK(test_picture, test_picture, {"For tests.", {}});

Logs test_no_scalar(const CallbackArguments&) {
  return {.scalars = {{"good", 1}, {"bad", at::ones({2})}}};
}
STEPOP_REGISTER_CALLBACK(test_no_scalar, test_no_scalar, {"For tests.", {}});

Logs test_no_picture(const CallbackArguments& arguments) {
  const auto kind = arguments.params.get("kind", "none");
  const at::Tensor bytes = at::zeros({1, 1, 4, 4}, at::kByte);
  return {.scalars = {{"one", 1}},
          .images = {{"good", at::zeros({1, 1, 4, 4})},
                     {"bad", kind == "bytes" ? bytes : at::Tensor()}}};
}
STEPOP_REGISTER_CALLBACK(test_no_picture, test_no_picture, {"For tests.", {}});

/// What these callbacks came to, over a file of one row in `folder`.
CallbackScalars look_at_one_row(const ScratchFolder& folder, const std::string& callbacks) {
  EvalWriter writer(folder.path("outputs.h5"), 1);
  writer.write({.labels = {{"loss", at::ones({1})}}}, std::vector<int64_t>{0});
  writer.finish();
  const Config config(
      parse_yaml("eval_hook: {eval_callbacks: {" + callbacks + "}}", {"test.yaml", 0}));
  const auto data = dataset_of("{class: Synthetic, size: 1}");
  return look_at_outputs(config, "validation/eval_op", 12, folder.path(), *data,
                         EvalFile(folder.path("outputs.h5")));
}

TEST_CASE(
    "scalars have full names, images files, and what is no scalar is its callback's failure") {
  const ScratchFolder folder;
  const CallbackScalars found =
      look_at_one_row(folder, "a: test_no_scalar, b: test_picture, c: test_picture");
  CHECK(found.scalars.key_list() == "validation/eval_op/b/half, validation/eval_op/c/half");
  CHECK(found.failures.key_list() == "a");
  CHECK(found.failures.at("a") ==
        "validation/eval_op/a/bad is no scalar: its shape is [2]; a mean() or sum() makes it one");
  CHECK(read_image(folder.path("b/seen/first_0000012.png")).size(1) == 8);
  CHECK(read_image(folder.path("c/seen/first_0000012.png")).size(1) == 8);
}

TEST_CASE("what is no image is its callback's failure, and the others go on") {
  const ScratchFolder folder;
  const CallbackScalars found = look_at_one_row(
      folder, "a: test_no_picture, b: {class: test_no_picture, kind: bytes}, c: test_picture");
  const std::string expected =
      "bad: images to show are floating-point [B, C, H, W] in [-1, 1] with C = 1 or 3, found ";
  CHECK(found.failures.key_list() == "a, b");
  CHECK(found.failures.at("a").starts_with(expected));
  CHECK(found.failures.at("b").starts_with(expected));
  CHECK(found.scalars.key_list() == "validation/eval_op/c/half");
  CHECK_FALSE(std::filesystem::exists(folder.path("a")));
  CHECK(read_image(folder.path("c/seen/first_0000012.png")).size(1) == 8);
}

Logs test_picture_name(const CallbackArguments& arguments) {
  return {.images = {{arguments.params.get<std::string>("key"), at::zeros({1, 1, 4, 4})}}};
}
STEPOP_REGISTER_CALLBACK(test_picture_name, test_picture_name, {"For tests.", {}});

TEST_CASE("a key that cannot be a file's name is its callback's failure") {
  for (const std::string& key : {std::string(), std::string("../../outputs"), std::string("a//b"),
                                 std::string("/a"), std::string(300, 'x')}) {
    const ScratchFolder folder;
    const CallbackScalars found = look_at_one_row(
        folder, "a: {class: test_picture_name, key: \"" + key + "\"}, b: test_picture");
    CHECK(found.failures.key_list() == "a");
    CHECK(
        found.failures.at("a") ==
        "the image \"" + key +
            "\" cannot be a file: parts of its name, between slashes, have 1 to 200 bytes and are "
            "not \".\" or \"..\"");
    CHECK((folder.names() == std::vector<std::string>{"b", "outputs.h5"}));
  }
}

TEST_CASE("an image that cannot be written passes") {
  const ScratchFolder folder;
  folder.write("b", "in the way");
  CHECK(message_of([&] { look_at_one_row(folder, "b: test_picture"); }).find(folder.path("b")) !=
        std::string::npos);
}

}  // namespace evaluation_callbacks_test
}  // namespace stepop
