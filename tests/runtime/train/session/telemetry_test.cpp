// What a training tells of itself beside what its ops log.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace telemetry_test {

/// The logs of the training's ops, not those of evaluations.
std::vector<nlohmann::json> logs_of(const TestRun& run) {
  std::vector<nlohmann::json> logs;
  for (const auto& line : run.metrics()) {
    if (line.contains("runtime/optimizer/lr")) logs.push_back(line);
  }
  return logs;
}

std::string clipped(const std::string& more) {
  std::string config = trainer_config("num_steps: 8\n" + more);
  return config.replace(config.find("Adam,"), 5, "Adam, clip_norm: 0.1,");
}

/// The histograms of a run, `weights/fc.weight_0000004`.
std::set<std::string> histograms(const TestRun& run) {
  std::set<std::string> names;
  const std::filesystem::path folder = run.root() + "/train/runtime/optimizer";
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    names.insert(entry.path().lexically_relative(folder).replace_extension().string());
  }
  return names;
}

TEST_CASE("each log has the learning rate, the norm of the gradients, the speed and the memory") {
  TestRun run(
      clipped("device: cpu\nlog_ops: [{op: train/log_op, when: {every: 3, at_end: true}}]"));
  run.train();
  const auto logs = logs_of(run);
  REQUIRE(logs.size() == 3);
  for (const auto& log : logs) {
    CAPTURE(log.dump());
    const auto step = log["step"].get<double>();
    CHECK((step == 3 || step == 6 || step == 8));
    // The step before was the last update: cosine from 1e-2 to 1e-4 in 12 steps.
    const double share = (1 + std::cos(M_PI * (step - 1) / 12)) / 2;
    CHECK(log["runtime/optimizer/lr"].get<double>() ==
          doctest::Approx(1e-4 + (1e-2 - 1e-4) * share));
    CHECK(log["runtime/optimizer/grad_norm"].get<double>() > 0.1);  // before it is clipped to that
    CHECK(log["runtime/examples_per_second"].get<double>() > 0);
    CHECK(log["runtime/data_wait"].get<double>() > 0);
    CHECK(log["runtime/data_wait"].get<double>() < 1);
    CHECK(log["runtime/process_mb"].get<double>() > 10);
    CHECK_FALSE(log.contains("runtime/device_mb"));
  }
}

TEST_CASE("a log that is due by minutes has no norm: no step knew that it would be logged") {
  TestRun run(
      trainer_config("num_steps: 8\neval_hook: null\n"
                     "log_ops: [{op: train/log_op, when: 0.000001m}]"));
  run.train();
  const auto logs = logs_of(run);
  REQUIRE_FALSE(logs.empty());
  for (const auto& log : logs) CHECK_FALSE(log.contains("runtime/optimizer/grad_norm"));
}

TEST_CASE("groups of parameters have rates of their own") {
  std::string config = trainer_config("num_steps: 1");
  config.replace(config.find("Adam,"), 5, "Adam, groups: [{match: bias, lr: 0.5}],");
  TestRun run(config);
  run.train();
  const auto log = logs_of(run).at(0);
  CHECK(log["runtime/optimizer/lr"] == 1e-2);
  CHECK(log["runtime/optimizer/lr_0"] == 0.5);
}

TEST_CASE("a training is the same to the bit without it") {
  const std::string off = "telemetry: {active: false}";
  const std::string on = "telemetry: {weights: 2, gradients: {every: 3, from: 1}}";
  TestRun with(clipped(on));
  with.train();
  TestRun without(clipped(off));
  without.train();
  CHECK(differences(with.checkpoint(8), without.checkpoint(8)) == "");
  CHECK(logs_of(without).empty());
  CHECK(histograms(without).empty());
}

TEST_CASE(
    "weights and gradients are counted when they are asked for, also where nothing is logged") {
  const auto of = [](const std::string& telemetry) {
    TestRun run(clipped("log_freq: 100\nstart_log_freq: 100\ntelemetry: " + telemetry));
    run.train();
    return histograms(run);
  };
  CHECK(of("{}").empty());
  const auto found = of("{weights: 1e, gradients: {every: 5}, parameters: bias$}");
  CHECK(found.size() == 9);
  for (const auto& name : found) {
    CAPTURE(name);
    CHECK(name.find(".bias_000000") != std::string::npos);
    CHECK((name.ends_with(name.starts_with("weights/") ? "4" : "5") || name.ends_with("8")));
  }
}

TEST_CASE("what telemetry cannot be is refused with its place") {
  const auto message = [](const std::string& telemetry) {
    return message_of([&] { TestRun(trainer_config("num_steps: 1\ntelemetry: " + telemetry)); });
  };
  CHECK(message("{gradients: 5m}").find("telemetry/gradients: expected steps (100) or epochs") !=
        std::string::npos);
  CHECK(message("{parameters: '('}").find("telemetry/parameters: ") != std::string::npos);
}

TEST_CASE("an expression for no parameter is refused, with the names that there are") {
  const std::string message = message_of(
      [] { TestRun(trainer_config("num_steps: 8\ntelemetry: {weights: 1, parameters: xyz}")); });
  CHECK(message.find("telemetry/parameters: \"xyz\" matches no parameter; the parameters are: "
                     "first.weight, first.bias, ") != std::string::npos);
}

TEST_CASE("an expression for parameters may have the name of their network") {
  TestRun run(
      trainer_config("num_steps: 8\ntelemetry: {weights: 8, parameters: "
                     "\"^model[.]last[.]bias\"}"));
  run.train();
  CHECK(histograms(run) == std::set<std::string>{"weights/last.bias_0000008"});
}

}  // namespace telemetry_test
}  // namespace stepop
