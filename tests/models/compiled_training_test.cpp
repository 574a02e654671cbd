// Trainings of networks of Python with compiled passes, and the settings that these refuse.
#include <ATen/autocast_mode.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/autocast.h"
#include "runtime/train/networks/generators.h"
#include "tests/message_of.h"
#include "tests/models/compiled_nets.h"
#include "tests/same_state.h"

namespace stepop {
namespace compiled_training_test {

const ScratchFolder& nets() { return compiled_nets(); }

/// Without Adam, in which a gradient of rounding alone becomes a whole step.
std::string training_of(const std::string& model) {
  std::string yaml = training_of_exported(model);
  const std::string adam = "{class: Adam, lr: 1e-2}";
  return yaml.replace(yaml.find(adam), adam.size(), "{class: SGD, lr: 1e-1, momentum: 0.9}");
}

std::string model_of(const std::string& name, const std::string& more = kCompiled) {
  return "{class: Exported, path: " + nets().path(name + ".pt2") + more + "}";
}

TEST_CASE("compiled passes train as the graph does, dropout included, and resume to the bit") {
  TestRun whole(training_of(model_of("drops")));
  whole.train();
  TestRun graph(training_of(model_of("drops", "")));
  graph.train();
  const State expected = whole.checkpoint(9);
  for (const auto& [name, tensor] : graph.checkpoint(9)) {
    CAPTURE(name);
    REQUIRE(expected.contains(name));
    check_close({expected.at(name).to(at::kDouble)}, {tensor.to(at::kDouble)}, 1e-3);
  }
  TestRun resumed(training_of(model_of("drops")), whole, 3);
  resumed.train();
  CHECK(differences(expected, resumed.checkpoint(9)) == "");
}

TEST_CASE("passes that were compiled in bfloat16 compute what autocast computes") {
  const auto outputs = [](const std::string& name, const std::string& more) {
    seed_generators(3, c10::kCPU);
    const auto net = exported(nets().path(name), more);
    net->train();
    const AutocastGuard guard(Precision::kBfloat16, c10::kCPU);
    const at::Tensor result = run_exported(*net, {at::randn({64, 1, 3, 3})})[0];
    CHECK((result.scalar_type() == at::kBFloat16));
    result.to(at::kFloat).square().sum().backward();
    const auto parameters = net->named_parameters();
    return std::vector<at::Tensor>{result.to(at::kFloat), parameters["last.weight"].grad(),
                                   parameters["first.weight"].grad()};
  };
  auto ours = outputs("drops-bfloat16", kCompiled);
  auto theirs = outputs("drops", "");
  // Behind the ReLU numbers near zero may fall on its other side, so directions are compared.
  const at::Tensor first = ours.back().flatten();
  const at::Tensor their_first = theirs.back().flatten();
  CHECK(first.dot(their_first).item<double>() >
        0.99 * (first.norm() * their_first.norm()).item<double>());
  ours.pop_back();
  theirs.pop_back();
  check_close(ours, theirs, 0.05);
}

TEST_CASE("settings under which compiled passes would compute something else are refused") {
  const auto refused = [](const std::string& name, const std::string& settings) {
    TestRun run(training_of(model_of(name)) + settings);
    const std::string text = message_of([&] { run.session.check(); });
    const size_t place = text.find(".pt2: ");
    return place == std::string::npos ? text : text.substr(place + 6);
  };
  CHECK(refused("drops", "") == "no error");
  CHECK(refused("drops", "precision: bfloat16\n")
            .starts_with("its passes were compiled in float32, and precision is bfloat16: python "
                         "-m stepop.eval.export "));
  CHECK(refused("drops-bfloat16", "")
            .starts_with("its passes were compiled in bfloat16, and precision is float32: python "
                         "-m stepop.eval.export "));
  CHECK(refused("drops", "checkpoint_modules: first\n") ==
        "checkpoint_modules: the compiled passes have decided what is kept for the backward pass: "
        "leave it out, or compiled: false");
  CHECK(refused("drops-bfloat16", "precision: bfloat16\nfloat32_modules: first\n") ==
        "float32_modules: compiled passes have one precision; torch.autocast(..., enabled=False) "
        "in forward "
        "keeps a part in float32, or compiled: false");
}

TEST_CASE("one value for batch normalization is refused with its layer, as without compiling") {
  std::string yaml = training_of(model_of("drops"));
  yaml.replace(yaml.find("size: 29"), 8, "size: 25");
  TestRun run(yaml);
  CHECK(message_of([&] { run.session.check(); })
            .find("drops.pt2: aten::batch_norm of norm (BatchNorm1d): Expected more than 1 value "
                  "per channel when training, got input size [1, 6]") != std::string::npos);
}

}  // namespace compiled_training_test
}  // namespace stepop
