#include "eval_out/callbacks/evaluation_callbacks.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "eval_out/write/eval_writer.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace evaluation_callbacks_test {

/// Returns its parameter `value`, the number of rows and what the run's config has as `batch_size`.
Logs test_echo(const CallbackArguments& arguments) {
  Logs logs;
  logs.scalars.set("value", arguments.params.get("value", 1.0));
  logs.scalars.set("rows", static_cast<double>(arguments.data_out.rows()));
  logs.scalars.set("batch_size", arguments.config.get("batch_size", 0.0));
  return logs;
}
STEPOP_REGISTER_CALLBACK(test_echo, test_echo, {"For tests.", {{"value", "1", "a number"}}});

Logs test_throws(const CallbackArguments& arguments) {
  throw Error("nothing to see in " + arguments.root);
}
STEPOP_REGISTER_CALLBACK(test_throws, test_throws, {"For tests.", {}});

class NoData : public Dataset {
 public:
  int64_t size() const override { return 0; }
  Example get(int64_t, Random&) const override { return {}; }
};

CallbackResults run(const char* yaml) {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 1);
  writer.write({.labels = {{"loss", at::ones({1})}}}, std::vector<int64_t>{0});
  writer.finish();
  const Config config(parse_yaml(yaml, {"test.yaml", 0}));
  return EvaluationCallbacks(config).call("the folder", NoData(),
                                          EvalFile(folder.path("outputs.h5")));
}

double scalar(const CallbackResults& results, const char* callback, const char* name) {
  return results.logs.at(callback).scalars.at(name).read(name);
}

TEST_CASE("a callback is named by its class alone or with its parameters") {
  const CallbackResults results = run(R"(
batch_size: 4
eval_hook:
  eval_callbacks:
    plain: test_echo
    with_kwargs: test_echo
    with_map: {class: test_echo, value: 3}
    switched_off: null
eval_pipeline: {callback_kwargs: {with_kwargs: {value: 2}}}
)");
  CHECK(results.failures.empty());
  CHECK(results.logs.key_list() == "plain, with_kwargs, with_map");
  CHECK(scalar(results, "plain", "value") == 1);
  CHECK(scalar(results, "with_kwargs", "value") == 2);
  CHECK(scalar(results, "with_map", "value") == 3);
  CHECK(scalar(results, "plain", "rows") == 1);
  CHECK(scalar(results, "plain", "batch_size") == 4);
}

TEST_CASE("a callback that throws is reported, and the others still run") {
  const CallbackResults results =
      run("eval_hook: {eval_callbacks: {first: test_throws, second: test_echo}}");
  CHECK(results.logs.key_list() == "second");
  CHECK(results.failures.key_list() == "first");
  CHECK(results.failures.at("first") == "nothing to see in the folder");
}

TEST_CASE("a config without callbacks runs none") {
  CHECK(run("{}").logs.empty());
  CHECK(run("eval_hook: {eval_callbacks: {}}").logs.empty());
}

TEST_CASE("mistakes in the callbacks are found before the run") {
  const auto declare = [](const char* yaml) {
    const Config config(parse_yaml(yaml, {"test.yaml", 0}));
    return message_of([&] {
      EvaluationCallbacks(config).declare();
      const std::string unknown = config.unknown_keys();
      if (!unknown.empty()) throw Error(unknown);
    });
  };
  CHECK(declare("eval_hook: {eval_callbacks: {a: {class: test_echo, value: 1}, b: test_echo}}\n"
                "eval_pipeline: {callback_kwargs: {b: {value: 3}}}\n") == "no error");
  // Other tests register callbacks as well; the nearest comes first.
  CHECK(declare("eval_hook: {eval_callbacks: {a: test_ecko}}")
            .starts_with("test.yaml:1: eval_hook/eval_callbacks/a: unknown callback "
                         "\"test_ecko\": did you mean \"test_echo\"? Known are: test_echo, "));
  CHECK(declare("eval_hook: {eval_callbacks: {a: {class: test_echo, valu: 1}}}") ==
        "test.yaml:1: unknown key \"eval_hook/eval_callbacks/a/valu\": did you mean "
        "\"eval_hook/eval_callbacks/a/value\"?");
  CHECK(declare("eval_hook: {eval_callbacks: [3]}") ==
        "test.yaml:1: eval_hook/eval_callbacks: expected callbacks, [accuracy], or a map of names "
        "and callbacks, such as {accuracy: accuracy}, found [3]");
}

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
  return EvaluationCallbacks(config).run("validation/eval_op", 12, folder.path(), *data,
                                         EvalFile(folder.path("outputs.h5")));
}

TEST_CASE(
    "scalars have full names, images files, and what is no scalar is its callback's failure") {
  const ScratchFolder folder;
  const CallbackScalars found =
      look_at_one_row(folder, "a: test_no_scalar, b: test_picture, c: test_picture");
  CHECK(found.scalars.key_list() == "validation/eval_op/b/half, validation/eval_op/c/half");
  CHECK(found.failures.key_list() == "a");
  CHECK(
      found.failures.at("a") ==
      "validation/eval_op/a/bad is not a scalar: its shape is [2]; reduce it with mean() or sum()");
  CHECK(read_image(folder.path("b/seen/first_0000012.png")).size(1) == 8);
  CHECK(read_image(folder.path("c/seen/first_0000012.png")).size(1) == 8);
}

TEST_CASE("what is no image is its callback's failure, and the others still run") {
  const ScratchFolder folder;
  const CallbackScalars found = look_at_one_row(
      folder, "a: test_no_picture, b: {class: test_no_picture, kind: bytes}, c: test_picture");
  const std::string expected =
      "bad: images to show are floating-point [B, C, H, W] in [-1, 1], found ";
  CHECK(found.failures.key_list() == "a, b");
  CHECK(found.failures.at("a").starts_with(expected));
  CHECK(found.failures.at("b").starts_with(expected));
  CHECK(found.scalars.key_list() == "validation/eval_op/c/half");
  CHECK_FALSE(std::filesystem::exists(folder.path("a")));
  CHECK(read_image(folder.path("c/seen/first_0000012.png")).size(1) == 8);
}

Logs test_files(const CallbackArguments& arguments) {
  const int64_t points = arguments.params.get("points", int64_t{2});
  return {.texts = {{"note", "seen"}},
          .histograms = {{"errors", at::zeros({3})}},
          .curves = {{"roc", {at::zeros({2}), at::zeros({points})}}}};
}
STEPOP_REGISTER_CALLBACK(test_files, test_files, {"For tests.", {{"points", "2", "of y"}}});

TEST_CASE("texts, histograms and curves of callbacks become files, as those of logs") {
  const ScratchFolder folder;
  const auto found = look_at_one_row(folder, "a: test_files, b: {class: test_files, points: 3}");
  CHECK(read_bytes(folder / "a/note_0000012.txt") == "seen");
  CHECK(read_bytes(folder / "a/errors_0000012.csv").starts_with("from,to,count\n"));
  CHECK(read_bytes(folder / "a/roc_0000012.csv") == "x,y\n0,0\n0,0\n");
  CHECK(read_image(folder.path("a/errors_0000012.png")).size(0) == 3);
  CHECK(read_image(folder.path("a/roc_0000012.png")).size(0) == 3);
  CHECK(found.failures.key_list() == "b");
  CHECK(found.failures.at("b").starts_with("roc: expected a curve, real x and y [N]"));
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
