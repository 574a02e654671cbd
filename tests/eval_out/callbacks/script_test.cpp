#include "eval_out/callbacks/script.h"

#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"
#include "tests/places.h"

namespace stepop {
namespace script_test {

constexpr const char* kPython = STEPOP_SOURCE_DIR "/.venv/bin/python3";

/// An evaluation of three rows, and a Python script.
class Scripted {
 public:
  explicit Scripted(const std::string& script) : script_(folder_.write("report.py", script)) {
    EvalWriter writer(folder_.path("outputs.h5"), 3);
    writer.write({.labels = {{"loss", at::ones({3})}}}, std::vector<int64_t>{0, 1, 2});
    writer.finish();
  }

  CallbackResults run(const std::string& yaml, const InterruptCheck& interrupt = {}) const {
    const Config config(parse_yaml(yaml, {folder_.path("test.yaml"), 0}));
    const EvaluationCallbacks callbacks(config);
    callbacks.declare();
    CHECK(config.unknown_keys() == "");
    return callbacks.call(folder_.path(), TensorData(),
                          EvalFile(folder_.path("outputs.h5"), interrupt));
  }
  CallbackResults run() const { return run("eval_hook: {eval_callbacks: {report: ./report.py}}"); }

  /// The message of the failure, with the script's path as SCRIPT.
  std::string failure() const {
    const CallbackResults results = run();
    std::string message = results.failures.contains("report") ? results.failures.at("report") : "";
    if (message.starts_with(script_)) message.replace(0, script_.size(), "SCRIPT");
    return message;
  }

  const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
  std::string script_;
};

double scalar(const CallbackResults& results, const char* name) {
  return results.logs.at("report").scalars.at(name).read(name);
}

TEST_CASE("a script gets the file, the folder and its parameters, and prints its scalars") {
  const Scripted script(R"(
import json, sys, h5py
rows = int(h5py.File(sys.argv[1]).attrs["rows"])
with open(sys.argv[2] + "/words.json", "w") as file:
    json.dump(sys.argv[3:], file)
print("looking at", rows, "rows")
print(json.dumps({"rows": rows, "half": 0.5, "group/tiny": 1e-9}))
print()
)");
  const auto check = [&](const CallbackResults& results, const char* words) {
    CHECK(results.failures.key_list() == "none");
    CHECK(scalar(results, "rows") == 3);
    CHECK(scalar(results, "half") == 0.5);
    CHECK(scalar(results, "group/tiny") == 1e-9);
    CHECK(read_bytes(script.folder().path("words.json")) == words);
  };
  check(script.run(), "[]");
  const char* words =
      R"(["--threshold", "0.5", "--names", "[\"a b\", 1]", "--text", "x y", "--on", "true"])";
  check(script.run("eval_hook: {eval_callbacks: {report: report.py}}\n"
                   "eval_pipeline: {callback_kwargs: {report: {threshold: 0.5, names: [a b, 1], "
                   "text: x y, none: null, on: true}}}"),
        words);
  check(script.run("eval_hook: {eval_callbacks: {report: {class: Script, path: report.py, "
                   "threshold: 0.5, names: [a b, 1], text: x y, on: true, python: " +
                   std::string(kPython) + "}}}"),
        words);
}

TEST_CASE("what Python's json prints for numbers that are not finite is read") {
  const CallbackResults results = Scripted(R"(
import json
print(json.dumps({"nan": float("nan"), "up": float("inf"), "down": -float("inf"),
                  "NaN, \"Infinity": 1.5, "text": "NaN"}))
)")
                                      .run();
  CHECK(results.failures.key_list() == "none");
  CHECK(std::isnan(scalar(results, "nan")));
  CHECK(std::isnan(scalar(results, "text")));
  CHECK(scalar(results, "up") == INFINITY);
  CHECK(scalar(results, "down") == -INFINITY);
  CHECK(scalar(results, "NaN, \"Infinity") == 1.5);
}

TEST_CASE("a script that prints nothing has no scalars") {
  CHECK(Scripted("").run().logs.at("report").scalars.empty());
}

TEST_CASE("a script that fails is reported with its exit status and its standard error") {
  CHECK(Scripted("import sys; print('nothing', file=sys.stderr); sys.exit(7)").failure() ==
        "SCRIPT ended with exit status 7:\nnothing");
  CHECK(Scripted("import sys; sys.exit(3)").failure() ==
        "SCRIPT ended with exit status 3 and wrote nothing to its standard error");
  CHECK(Scripted("import os; os.kill(os.getpid(), 9)").failure() ==
        "SCRIPT was ended by signal 9 and wrote nothing to its standard error");
  const std::string message = Scripted("def f():\n  raise ValueError('no rows')\nf()").failure();
  CHECK(message.starts_with("SCRIPT ended with exit status 1:\nTraceback "));
  CHECK(message.ends_with("ValueError: no rows"));
}

TEST_CASE("a last line that is no JSON object of numbers is reported") {
  const std::string begin =
      "SCRIPT: the last line that it prints must be a JSON object of numbers, such as "
      "{\"accuracy\": 0.98}; ";
  CHECK(Scripted("print('done')").failure() == begin + "found: done");
  CHECK(Scripted("print([1])").failure() == begin + "found: [1]");
  CHECK(Scripted("print('{\"a\": \"b\"}')").failure() ==
        begin + "\"a\" is not a number: {\"a\": \"b\"}");
  CHECK(Scripted("print('{\"a\": nan}')").failure() == begin + "found: {\"a\": nan}");
  CHECK(Scripted("print('{\"\": 1}')").failure() == begin + "a number has no name: {\"\": 1}");
  CHECK(Scripted("print('x' * 1000)").failure() ==
        begin + "found: " + std::string(200, 'x') + "...");
}

TEST_CASE("a script may print much, and leave something running") {
  const Scripted script(R"(
import subprocess, sys
for i in range(100000): print("line", i); print("warning", i, file=sys.stderr)
subprocess.Popen(["sleep", "20"])
print('{"a": 1}')
)");
  CHECK(scalar(script.run(), "a") == 1);
}

TEST_CASE("an interrupt ends the script and what it started") {
  const Scripted script(R"(
import os, subprocess, time
child = subprocess.Popen(["sleep", "600"])
with open("pids.tmp", "w") as file: file.write(f"{os.getpid()} {child.pid}")
os.rename("pids.tmp", "pids")
time.sleep(600)
)");
  const std::string before = std::filesystem::current_path().string();
  std::filesystem::current_path(script.folder().path());
  const auto stop = [&] {
    if (std::filesystem::exists(script.folder().path("pids"))) throw Interrupted("stop", 143);
  };
  CHECK_THROWS_AS(script.run("eval_hook: {eval_callbacks: {report: report.py}}", stop),
                  Interrupted);
  std::filesystem::current_path(before);
  int python = 0, child = 0;
  REQUIRE(std::sscanf(read_bytes(script.folder().path("pids")).c_str(), "%d %d", &python, &child) ==
          2);
  CHECK(::kill(python, 0) == -1);
  // The grandchild got the same signal; whoever adopted it may not have noted its end yet.
  const auto is_over = [child] {
    const auto state = try_read_file(fmt::format("/proc/{}/stat", child));
    return !state || state->find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 6000 && !is_over(); ++i) ::usleep(10'000);
  CHECK(is_over());
}

TEST_CASE("a script or a Python that is not there is found before the run") {
  const Scripted script("");
  const std::string place =
      script.folder().path("test.yaml") + ":1: eval_hook/eval_callbacks/report: ";
  const auto message = [&](const std::string& yaml) {
    return message_of([&] { script.run(yaml); });
  };
  CHECK(message("eval_hook: {eval_callbacks: {report: ./none.py}}") ==
        place + script.folder().path("none.py") + ": no such script");
  CHECK(message("eval_hook: {eval_callbacks: {report: {class: Script, path: report.py, "
                "python: no-python}}}") ==
        place + "no Python to run " + script.folder().path("report.py") +
            " with: no-python: not found; give one by \"python\" or by the environment's "
            "STEPOP_PYTHON");
  CHECK(message("eval_hook: {eval_callbacks: {report: {class: Script}}}")
            .starts_with(script.folder().path("test.yaml") +
                         ":1: eval_hook/eval_callbacks/report/path: missing"));
}

TEST_CASE("STEPOP_PYTHON names another Python") {
  const Scripted script("print('{\"a\": 1}')");
  script.folder().write("other", "#!/bin/sh\necho '{\"a\": 2}'\n");
  std::filesystem::permissions(script.folder().path("other"), std::filesystem::perms::owner_all);
  ::setenv("STEPOP_PYTHON", script.folder().path("other").c_str(), 1);
  const CallbackResults results = script.run();
  ::unsetenv("STEPOP_PYTHON");
  CHECK(scalar(results, "a") == 2);
}

}  // namespace script_test
}  // namespace stepop
