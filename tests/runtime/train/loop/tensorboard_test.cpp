// What a training with `integrations/tensorboard` writes, beside its metrics.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/tools/graph/network_graphs.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/test_run.h"

namespace stepop {
namespace loop_tensorboard_test {

namespace fs = std::filesystem;

const std::string kTraining = R"(
iterator: Classifier
model: {class: MLP, inputs: 16, hidden: [4], classes: 3}
datasets:
  train: {class: Synthetic, size: 20, shape: [1, 4, 4], classes: 3}
  validation: {class: Synthetic, size: 6, shape: [1, 4, 4], classes: 3}
batch_size: 5
log_freq: 2
ckpt_freq: 1
optimizer: {class: SGD, lr: 0.1}
)";

const std::string kActive = "integrations: {tensorboard: {active: true}}\n";

/// Its events, one JSON object a line.
std::vector<nlohmann::json> events_of(const TestRun& run) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(run.root() + "/train/tensorboard")) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::istringstream text(
      run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/core/log/read_events.py"), files));
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(text, line);) events.push_back(nlohmann::json::parse(line));
  return events;
}

TEST_CASE("nothing is written for TensorBoard unless it is asked for") {
  TestRun run(kTraining + "num_steps: 2\n");
  run.train();
  CHECK_FALSE(fs::exists(run.root() + "/train/tensorboard"));
}

TEST_CASE("TensorBoard gets the numbers of the metrics file, images and the config") {
  TestRun run(kTraining + kActive + "num_steps: 4\n");
  run.train();
  const auto events = events_of(run);
  CHECK(events.at(0) == nlohmann::json{{"step", 0}, {"version", "brain.Event:2"}});
  CHECK(events.at(1) == nlohmann::json{{"step", 0}, {"status", 1}});
  CHECK(events.at(2).at("config").get<std::string>().find("    iterator: Classifier\n") !=
        std::string::npos);
  size_t next = 3;
  int images = 0;
  for (const auto& line : run.metrics()) {
    CAPTURE(line);
    const auto& event = events.at(next++);
    CHECK(event.at("step") == line.at("step"));
    for (const auto& [key, value] : line.items()) {
      if (key.find('/') == std::string::npos) continue;
      const auto shown = static_cast<float>(std::stod(event.at(key).get<std::string>()));
      CHECK(shown == static_cast<float>(value.get<double>()));
    }
    if (event.contains("train/log_op/input")) {
      ++images;
      CHECK(event.at("train/log_op/input") == "png 8x12x1");
    }
  }
  CHECK(next == events.size());
  CHECK(images > 0);
}

TEST_CASE("TensorBoard gets each histogram of weights once, and a rate once a step") {
  TestRun run(kTraining + kActive + "num_steps: 12\ntelemetry: {weights: 4, gradients: 6}\n");
  run.train();
  std::map<std::string, std::vector<int64_t>> steps;
  for (const auto& event : events_of(run)) {
    for (const auto& [key, value] : event.items()) {
      if (key.find('/') != std::string::npos) steps[key].push_back(event.at("step"));
    }
  }
  int histograms = 0;
  for (const auto& [key, at] : steps) {
    CAPTURE(key);
    CHECK(std::ranges::adjacent_find(at) == at.end());
    const bool is_of_weights = key.starts_with("runtime/optimizer/weights/");
    if (!is_of_weights && !key.starts_with("runtime/optimizer/gradients/")) continue;
    ++histograms;
    CHECK(at == (is_of_weights ? std::vector<int64_t>{4, 8, 12} : std::vector<int64_t>{6, 12}));
  }
  CHECK(histograms == 8);  // of two layers' weights and biases
  CHECK(steps.at("runtime/optimizer/lr").back() == 12);
}

TEST_CASE("TensorBoard gets what the networks compute, after the check that runs them") {
  TestRun run(kTraining + kActive + "num_steps: 1\n");
  run.session.check(logged_graph);
  run.train();
  const auto graph = events_of(run).at(3).at("graph");
  CHECK(graph.at(0) ==
        nlohmann::json{"model/input", "input", nlohmann::json::array(), {{5, 1, 4, 4}}});
  CHECK(graph.at(2) ==
        nlohmann::json{"model/layers/0/linear", "linear", {"model/flatten"}, {{5, 4}}});
  CHECK(graph.at(5) ==
        nlohmann::json{"model/output_0", "output", {"model/layers/1/linear"}, {{5, 3}}});
}

std::string with_dropout() {
  std::string training = kTraining;
  return training.replace(training.find("classes: 3}"), 11, "classes: 3, dropout: 0.5}");
}

TEST_CASE("the graph changes no bit of a training, and can be left out") {
  // With the check that runs the ops first, as `stepop -t` does it.
  const auto train = [](const std::string& integrations, auto look) {
    TestRun run(with_dropout() + "num_steps: 3\n" + integrations);
    run.session.check(logged_graph);
    run.train();
    look(events_of(run));
    return load_checkpoint(run.checkpoint_path(3)).tensors;
  };
  const auto has_graph = [](const std::vector<nlohmann::json>& events) {
    return std::ranges::any_of(events, [](const auto& each) { return each.contains("graph"); });
  };
  const State same = train(kActive, [&](const auto& events) { CHECK(has_graph(events)); });
  const State weights = train("integrations: {tensorboard: {active: true, graph: false}}\n",
                              [&](const auto& events) { CHECK_FALSE(has_graph(events)); });
  for (const auto& [name, tensor] : weights) {
    CAPTURE(name);
    CHECK(tensor.equal(same.at(name)));
  }
}

TEST_CASE("a training that goes on begins a file that replaces what came after its checkpoint") {
  TestRun run(kTraining + kActive + "num_steps: 4\n");
  run.train();
  const size_t before = events_of(run).size();
  TestRun resumed(kTraining + kActive + "num_steps: 6\n", run, 2);
  resumed.train();
  const auto events = events_of(resumed);
  CHECK(events.at(before) == nlohmann::json{{"step", 0}, {"version", "brain.Event:2"}});
  CHECK(events.at(before + 1) == nlohmann::json{{"step", 3}, {"status", 1}});
  CHECK(events.at(before + 2).at("step") == 3);
  for (size_t i = before + 3; i < events.size(); ++i) CHECK(events[i].at("step").get<int>() > 2);
}

TEST_CASE("a folder that cannot be made ends the training before its first step") {
  TestRun run(kTraining + kActive + "num_steps: 2\n");
  write_bytes(run.root() + "/train/tensorboard", "in the way");
  const std::string message = message_of([&] { run.train(); });
  CHECK(message.find(run.root() + "/train/tensorboard") != std::string::npos);
  CHECK(run.metrics().empty());
}

TEST_CASE("a misspelt key of the integration is told") {
  CHECK(message_of([] {
          TestRun(kTraining + "num_steps: 2\nintegrations: {tensorboard: {actve: true}}\n");
        }) ==
        "test.yaml:12: unknown key \"integrations/tensorboard/actve\": did you mean "
        "\"integrations/tensorboard/active\"?\n(--allow-unknown makes this a warning)");
}

}  // namespace loop_tensorboard_test
}  // namespace stepop
