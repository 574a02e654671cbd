#include "eval_out/callbacks/callback.h"

#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "eval_out/write/eval_writer.h"
#include "runtime/config/yaml_reader.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace callback_test {

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
  return run_callbacks(config, "eval_hook/eval_callbacks", "the folder", NoData(),
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
      run("eval_hook: {eval_callbacks: {first: test_throws, second: test_echo, third: nobody}}");
  CHECK(results.logs.key_list() == "second");
  CHECK(results.failures.key_list() == "first, third");
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
      declare_callbacks(config, "eval_hook/eval_callbacks");
      const std::string unknown = config.unknown_keys();
      if (!unknown.empty()) throw Error(unknown);
    });
  };
  CHECK(declare("eval_hook: {eval_callbacks: {a: {class: test_echo, value: 1}, b: test_echo}}\n"
                "eval_pipeline: {callback_kwargs: {b: {value: 3}}}\n") == "no error");
  // Other tests register callbacks as well; the nearest comes first.
  CHECK(declare("eval_hook: {eval_callbacks: {a: test_ecko}}")
            .starts_with("test.yaml:1: eval_hook/eval_callbacks/a: unknown callback "
                         "\"test_ecko\"; known are: test_echo, "));
  CHECK(declare("eval_hook: {eval_callbacks: {a: {class: test_echo, valu: 1}}}") ==
        "test.yaml:1: unknown key \"eval_hook/eval_callbacks/a/valu\": did you mean "
        "\"eval_hook/eval_callbacks/a/value\"?");
  CHECK(declare("eval_hook: {eval_callbacks: [accuracy]}") ==
        "test.yaml:1: eval_hook/eval_callbacks: expected a map of names and callbacks, such as "
        "{accuracy: accuracy}, found a list of 1");
}

}  // namespace callback_test
}  // namespace stepop
