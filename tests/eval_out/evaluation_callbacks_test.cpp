#include "eval_out/evaluation_callbacks.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "eval_out/eval_writer.h"
#include "runtime/config/yaml_reader.h"
#include "runtime/files/image_file.h"
#include "tests/dataset_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

Logs test_picture(const CallbackArguments&) {
  return {.scalars = {{"half", 0.5}}, .images = {{"seen/first", at::zeros({3, 1, 4, 4})}}};
}
STEPOP_REGISTER_CALLBACK(test_picture, test_picture, {"For tests.", {}});

Logs test_no_scalar(const CallbackArguments&) {
  return {.scalars = {{"good", 1}, {"bad", at::ones({2})}}};
}
STEPOP_REGISTER_CALLBACK(test_no_scalar, test_no_scalar, {"For tests.", {}});

TEST_CASE(
    "scalars have full names, images files, and what is no scalar is its callback's failure") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 1);
  writer.write({.labels = {{"loss", at::ones({1})}}}, std::vector<int64_t>{0});
  writer.finish();
  const Config config(parse_yaml(
      "eval_hook: {eval_callbacks: {a: test_no_scalar, b: test_picture, c: test_picture}}",
      {"test.yaml", 0}));
  const auto data = dataset_of("{class: Synthetic, size: 1}");
  const CallbackScalars found = look_at_outputs(config, "validation/eval_op", 12, folder.path(),
                                                *data, EvalFile(folder.path("outputs.h5")));
  CHECK(found.scalars.key_list() == "validation/eval_op/b/half, validation/eval_op/c/half");
  CHECK(found.failures.key_list() == "a");
  CHECK(found.failures.at("a") ==
        "validation/eval_op/a/bad is no scalar: its shape is [2]; a mean() or sum() makes it one");
  CHECK(read_image(folder.path("b/seen/first_0000012.png")).size(1) == 8);
  CHECK(read_image(folder.path("c/seen/first_0000012.png")).size(1) == 8);
}

}  // namespace
}  // namespace stepop
