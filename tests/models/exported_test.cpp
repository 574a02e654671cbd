// Networks of torch.export against the same in PyTorch: results, gradients, and buffers.
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace exported_test {

/// What exported_nets.py writes, once for all tests.
const ScratchFolder& nets() {
  static const ScratchFolder folder;
  static const bool done = [] {
    run_python(
        "import runpy, sys; sys.argv = sys.argv[3:]; runpy.run_path(sys.argv[0], "
        "run_name='__main__')",
        {"-", "-", STEPOP_SOURCE_DIR "/tests/models/exported_nets.py", folder.path(),
         STEPOP_SOURCE_DIR "/eval_out/python"});
    return true;
  }();
  return done ? folder : folder;
}

std::shared_ptr<torch::nn::Module> exported(const std::string& name) {
  return models().build(
      test_config("model: {class: Exported, path: " + nets().path(name + ".pt2") + "}"), "model");
}

std::vector<at::Tensor> run(torch::nn::Module& module, const std::vector<at::Tensor>& inputs) {
  if (auto* one = dynamic_cast<Network*>(&module)) return {one->forward(inputs.at(0))};
  return dynamic_cast<MultiNetwork&>(module).forward_all(inputs);
}

std::vector<at::Tensor> numbered(const State& state, const std::string& prefix) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; state.contains(prefix + std::to_string(i)); ++i) {
    tensors.push_back(state.at(prefix + std::to_string(i)));
  }
  return tensors;
}

void check_close(const std::vector<at::Tensor>& ours, const std::vector<at::Tensor>& theirs) {
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) CHECK(at::allclose(ours[i], theirs[i], 1e-5, 1e-5));
}

TEST_CASE("an exported network computes what it computes in PyTorch, in both modes") {
  for (const char* name : {"unet", "tied", "recurrent", "two"}) {
    CAPTURE(name);
    const State facts = load_safetensors(nets().path(std::string(name) + ".safetensors")).tensors;
    const auto net = exported(name);
    const auto inputs = numbered(facts, "in.");
    net->eval();
    check_close(run(*net, inputs), numbered(facts, "eval."));
    net->train();
    const auto results = run(*net, inputs);
    check_close(results, numbered(facts, "train."));
    at::Tensor loss = results[0].square().sum();
    for (size_t i = 1; i < results.size(); ++i) loss = loss + results[i].square().sum();
    loss.backward();
    int64_t gradients = 0;
    for (const auto& parameter : net->named_parameters()) {
      CAPTURE(parameter.key());
      REQUIRE(parameter.value().grad().defined());
      CHECK(
          at::allclose(parameter.value().grad(), facts.at("grad." + parameter.key()), 1e-4, 1e-4));
      ++gradients;
    }
    CHECK(gradients > 2);
    for (const auto& buffer : net->named_buffers()) {
      CAPTURE(buffer.key());
      CHECK(at::allclose(buffer.value(), facts.at("buffer." + buffer.key()), 1e-5, 1e-6));
    }
  }
}

std::string training_of(const std::string& model) {
  return "iterator: Classifier\nmodel: " + model + R"(
datasets:
  train: {class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3}
  validation: {class: Synthetic, size: 10, shape: [1, 3, 3], classes: 3, seed: 5}
batch_size: 8
optimizer: {class: Adam, lr: 1e-2}
num_steps: 9
ckpt_freq: 3
num_threads: 1
n_data_processes: 0
ema: {decay: 0.9}
eval_weights: ema
)";
}

TEST_CASE("an exported network trains as the same in C++ to the bit, dropout included") {
  const std::string exported =
      training_of("{class: Exported, path: " + nets().path("drops.pt2") + "}");
  TestRun whole(exported);
  State first;
  for (const auto& [name, tensor] : whole.session.context().tracker.save()) {
    first.emplace(name, tensor.clone());
  }
  // With its weights and its state of the random numbers.
  const Checkpoint start{first, whole.session.position(), whole.session.config_yaml()};
  whole.train();
  TestRun in_cpp(training_of("{class: TestDropoutNet, inputs: 9}"));
  in_cpp.session.resume(start, "start");
  in_cpp.train();
  TestRun resumed(exported, whole, 3);
  const State expected = whole.checkpoint(9);
  resumed.train();
  CHECK(differences(expected, in_cpp.checkpoint(9)) == "");
  CHECK(differences(expected, resumed.checkpoint(9)) == "");
  CHECK(differences(expected, first).find("model.norm.running_mean") != std::string::npos);
}

TEST_CASE("a parameter that Python does not train is not trained, and constants are no state") {
  const auto net = exported("frozen");
  std::string names;
  for (const auto& parameter : net->named_parameters()) {
    if (parameter.value().requires_grad()) names += parameter.key() + " ";
  }
  CHECK(names == "a.bias b.weight b.bias ");
  CHECK(net->named_buffers().size() == 0);
}

TEST_CASE("constants of an exported network go where its input is") {
  const auto net = exported("constant");
  CHECK(run(*net, {at::ones({4, 3}, at::kMeta)})[0].is_meta());
}

TEST_CASE("an exported network refuses inputs of other sizes than it was exported for") {
  const auto net = exported("unet");
  const std::string message = message_of([&] { run(*net, {at::ones({2, 4, 8, 8})}); });
  CHECK(message.find("it was exported for an input x [*, 3, *, *], and got [2, 4, 8, 8]") !=
        std::string::npos);
}

TEST_CASE("a file that is no program of torch.export is refused") {
  const ScratchFolder folder;
  const std::string path = nets().path("unet.safetensors");
  CHECK(message_of([&] {
          models().build(test_config("model: {class: Exported, path: " + path + "}"), "model");
        }).find(path) != std::string::npos);
}

}  // namespace exported_test
}  // namespace stepop
