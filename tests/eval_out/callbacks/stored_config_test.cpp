#include "eval_out/callbacks/stored_config.h"

#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "eval_out/write/eval_writer.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace stored_config_test {

constexpr const char* kStored = R"(
model: {class: LeNet, hidden: [3]}
datasets: {validation: {class: Synthetic, size: 4}}
extra: {note: '{{model}}'}
eval_hook:
  eval_callbacks:
    accuracy: accuracy
    top: {class: top_k, k: 3}
    off: null
eval_pipeline:
  callback_kwargs:
    accuracy: {target: digit}
    other: {unknown_of_another_callback: 1}
)";

/// What the config is of a file with that config: the callbacks and their parameters.
struct Made {
  std::string callbacks, parameters;
  Config config;
};

Made make(const std::vector<std::string>& callbacks, const std::vector<Override>& overrides = {},
          const char* stored = kStored, const char* trusted = nullptr) {
  const ScratchFolder folder;
  OrderedMap<Attribute> attributes;
  if (stored != nullptr) attributes.set("config", std::string(stored));
  EvalWriter writer(folder.path("outputs.h5"), 1, attributes);
  writer.write({.labels = {{"loss", at::ones({1})}}}, std::vector<int64_t>{0});
  writer.finish();
  try {
    const Value run = parse_yaml(trusted == nullptr ? "{}" : trusted, {"run.yaml", 0});
    const Config config = stored_config(EvalFile(folder.path("outputs.h5")), callbacks, {},
                                        overrides, trusted == nullptr ? nullptr : &run);
    const Value* parameters = config.peek("eval_pipeline/callback_kwargs");
    return {flow_yaml(*config.peek("eval_hook/eval_callbacks")),
            parameters == nullptr ? "" : flow_yaml(*parameters), config};
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string path = folder.path("outputs.h5");
    if (message.starts_with(path)) message.replace(0, path.size(), "FILE");
    throw Error(message);
  }
}

Override given(const std::string& path, Value value) {
  return {path, value.set_origin({Origin::kCommandLine, 0})};
}

TEST_CASE("without a choice the callbacks of the stored config run, with their parameters") {
  const Made made = make({});
  CHECK(made.callbacks == "{accuracy: accuracy, top: {class: top_k, k: 3}}");
  CHECK(made.config.get<std::string>("eval_pipeline/callback_kwargs/accuracy/target") == "digit");
  CHECK(made.config.get<int64_t>("datasets/validation/size") == 4);
  CHECK(made.config.get<std::string>("extra/note") == "{model}");
}

TEST_CASE("a choice is a name of the stored config, a callback, or a name for one") {
  CHECK(make({"top"}).callbacks == "{top: {class: top_k, k: 3}}");
  CHECK(make({"histogram"}).callbacks == "{histogram: histogram}");
  CHECK(make({"a:histogram", "b:histogram", "accuracy"}).callbacks ==
        "{a: histogram, b: histogram, accuracy: accuracy}");
  CHECK(make({"histogram"}, {}, nullptr).callbacks == "{histogram: histogram}");
}

TEST_CASE("parameters are changed where the callback has them, and other keys as well") {
  const Made made = make({"top", "accuracy", "h:histogram"},
                         {given("top/k", 2), given("accuracy/logits", "scores"), given("h/bins", 9),
                          given("datasets/validation/size", 8)});
  CHECK(made.callbacks == "{top: {class: top_k, k: 2}, accuracy: accuracy, h: histogram}");
  CHECK(made.config.get<std::string>("eval_pipeline/callback_kwargs/accuracy/logits") == "scores");
  CHECK(made.config.get<std::string>("eval_pipeline/callback_kwargs/accuracy/target") == "digit");
  CHECK(made.config.get<int64_t>("eval_pipeline/callback_kwargs/h/bins") == 9);
  CHECK(made.config.get<int64_t>("datasets/validation/size") == 8);
}

TEST_CASE("mistakes are named") {
  const auto message = [](const std::vector<std::string>& callbacks,
                          const std::vector<Override>& overrides = {},
                          const char* stored = kStored) {
    return message_of([&] { make(callbacks, overrides, stored); });
  };
  CHECK(message({}, {}, "{}") ==
        "FILE: no callback to run: its config names none; give one with -c, `stepop list` shows "
        "them");
  CHECK(message({"off"}) ==
        "-c off: the stored config has switched that callback off; name a callback: -c "
        "off:my_callback");
  CHECK(message({"a:b/c"}).find("unknown callback \"b/c\"") != std::string::npos);
  CHECK(message({"a/b"}).starts_with("-c a/b: expected a callback, a name and a callback"));
  CHECK(message({":accuracy"}).starts_with("-c :accuracy: expected a callback, "));
  CHECK(message({"top"}, {given("top/q", 1)})
            .find("unknown key \"eval_hook/eval_callbacks/top/q\"") != std::string::npos);
  CHECK(message({"top"}, {given("tops/k", 1)}).ends_with("did you mean --top/k?"));
  CHECK(
      message({"top"}, {given("top", 1)})
          .starts_with(
              "--top: neither a callback of this evaluation (top) nor a key of the stored config"));
  CHECK(message({"top"}, {}, "a: [").starts_with("the config that is stored in the file: "));
}

TEST_CASE("a program that only the file names is not run: the file may be from anywhere") {
  const char* evil = R"(
extra: {report: ./evil.py}
eval_hook:
  eval_callbacks:
    accuracy: accuracy
    text: /tmp/evil.py
    hidden: '{extra/report}'
    map: {class: Script, path: /tmp/evil.py}
    apart: Script
    metric: {class: PythonMetric, metric: os.system}
    metric_apart: PythonMetric
eval_pipeline:
  callback_kwargs:
    mine: {python: /tmp/evil}
    apart: {path: /tmp/evil.py}
    metric_apart: {metric: sklearn.metrics.f1_score, kwargs: {average: macro}}
)";
  const auto message = [&](const std::string& callback, const std::vector<Override>& overrides = {},
                           const char* trusted = nullptr) {
    return message_of([&] { make({callback}, overrides, evil, trusted); });
  };
  CHECK(message("accuracy") == "no error");
  CHECK(message("text") ==
        "FILE: eval_hook/eval_callbacks/text: it would run \"/tmp/evil.py\", which only the file "
        "names: it is not in the folder of a run. The file may be from anywhere. If you trust it, "
        "name the program "
        "yourself: -c text:/tmp/evil.py");
  CHECK(message("hidden").find("it would run \"./evil.py\"") != std::string::npos);
  CHECK(message("map").ends_with("--map/path SCRIPT"));
  CHECK(message("apart").ends_with("--apart/path SCRIPT"));
  CHECK(message("metric").ends_with("--metric/metric METRIC"));
  CHECK(message("metric_apart").ends_with("--metric_apart/metric METRIC"));
  CHECK(message("metric_apart", {given("metric_apart/metric", "sklearn.metrics.f1_score")})
            .ends_with("--metric_apart/kwargs KWARGS"));
  CHECK(message("mine:" STEPOP_SOURCE_DIR "/tests/eval_out/callbacks/make_expected.py")
            .ends_with("--mine/python PYTHON"));
  // The script of another run is no better; the run's own script is.
  CHECK(message("text", {}, "{}").find("the config of its run does not. ") != std::string::npos);
  CHECK(message("text", {}, "eval_hook: {eval_callbacks: {text: /tmp/evil.py}}")
            .ends_with("/tmp/evil.py: no such script"));
  // What the user gives is taken.
  CHECK(message("map", {given("map/path", "/tmp/mine.py")}).ends_with("mine.py: no such script"));
}

}  // namespace stored_config_test
}  // namespace stepop
