// Networks of Python with compiled passes: what they compute, and with which inputs and parameters
// they do not.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/train/networks/generators.h"
#include "tests/message_of.h"
#include "tests/models/compiled_nets.h"

namespace stepop {
namespace compiled_test {

const ScratchFolder& nets() { return compiled_nets(); }

/// They sum in another order than the graph, through dozens of layers in the largest networks.
void check_compiled(const std::string& path) { check_network(path, kCompiled, 1e-3, 1e-6, 1e-4); }

TEST_CASE("compiled passes compute what the network computes in PyTorch, in both modes") {
  for (const char* name : {"tied", "drops", "blocks"}) {
    CAPTURE(name);
    check_compiled(nets().path(name));
  }
}

/// Where a sum in another order falls on another step of bfloat16, it differs by one.
TEST_CASE("compiled passes compute what a network under autocast computes, to its steps") {
  check_network(nets().path("two"), kCompiled, 2e-2, 1e-6, 2e-2);
}

TEST_CASE("networks in STEPOP_ZOO that have compiled passes compute what they compute in PyTorch") {
  const char* folder = std::getenv("STEPOP_ZOO");
  if (folder == nullptr) return;  // exported_zoo.py and compiled_nets.py make them
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pt2") continue;
    const std::string name = entry.path().stem();
    MESSAGE(name);
    check_compiled(folder + ("/" + name));
  }
}

/// The parameters are read where they are: a change of them is seen without a copy.
TEST_CASE("compiled passes read the parameters of the network, and write its buffers") {
  const auto net = exported(nets().path("drops"), kCompiled);
  net->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::randn({5, 1, 3, 3});
  const at::Tensor before = run_exported(*net, {input})[0];
  for (auto& parameter : net->parameters()) parameter.zero_();
  CHECK_FALSE(at::equal(run_exported(*net, {input})[0], before));
  CHECK(run_exported(*net, {input})[0].abs().max().item<double>() == 0);
  const at::Tensor mean = net->named_buffers()["norm.running_mean"];
  const at::Tensor old = mean.clone();
  net->named_parameters()["first.bias"].fill_(1);
  net->train();
  run_exported(*net, {input});
  CHECK_FALSE(at::equal(mean, old));
}

/// Both are left to the graph.
TEST_CASE("gradients of inputs, and those of an evaluation, are those of the graph, to the bit") {
  const auto gradients = [](const std::string& more, bool training) {
    seed_generators(3, c10::kCPU);
    const auto net = exported(nets().path("drops"), more);
    net->train(training);
    const at::Tensor input = at::randn({16, 1, 3, 3}).requires_grad_(training);
    run_exported(*net, {input})[0].square().sum().backward();
    std::vector<at::Tensor> found;
    if (training) found.push_back(input.grad());
    for (const auto& parameter : net->parameters()) found.push_back(parameter.grad());
    return found;
  };
  for (const bool training : {true, false}) {
    CAPTURE(training);
    const auto graph = gradients("", training);
    const auto compiled = gradients(kCompiled, training);
    REQUIRE(graph.size() == compiled.size());
    CHECK(graph.front().abs().max().item<double>() > 0.1);
    for (size_t i = 0; i < graph.size(); ++i) CHECK(at::equal(graph[i], compiled[i]));
  }
}

TEST_CASE("a graph of compiled passes that is walked after an update raises PyTorch's error") {
  const auto net = exported(nets().path("two"), kCompiled);
  net->train();
  const auto outputs = run_exported(*net, {at::randn({4, 3}), at::randn({4, 5})});
  outputs[0].sum().backward();
  const auto drops = exported(nets().path("drops"), kCompiled);
  drops->train();
  const at::Tensor loss = run_exported(*drops, {at::randn({4, 1, 3, 3})})[0].square().sum();
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : drops->parameters()) parameter.add_(1);
  }
  CHECK(message_of([&] { loss.backward(); }).find("modified by an inplace operation") !=
        std::string::npos);
}

/// Inductor expects results of convolutions in an order in memory that oneDNN would choose.
TEST_CASE("compiled passes compute what the graph computes without oneDNN, at any size") {
  const bool was_on = at::globalContext().userEnabledMkldnn();
  const std::vector<std::vector<int64_t>> sizes = {
      {4, 4, 6, 6}, {16, 4, 6, 6}, {40, 4, 6, 6}, {3, 4, 9, 5}};
  for (const auto& size : sizes) {
    CAPTURE(size);
    const auto outputs = [&](const std::string& more) {
      const auto net = exported(nets().path("blocks"), more);
      net->train();
      seed_generators(3, c10::kCPU);
      const auto results = run_exported(*net, {at::randn(size)});
      results[0].square().sum().backward();
      return std::vector<at::Tensor>{results[0], net->named_parameters()["last.weight"].grad()};
    };
    at::globalContext().setUserEnabledMkldnn(false);
    const auto ours = outputs(kCompiled);
    const auto theirs = outputs("");
    at::globalContext().setUserEnabledMkldnn(was_on);
    check_close(ours, theirs, 1e-4);
  }
}

TEST_CASE("gradients of an embedding have the same bits each time, with two threads") {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const auto net = exported(nets().path("tied"), kCompiled);
  net->train();
  const at::Tensor tokens = at::randint(20, {64, 7}, at::kLong);
  std::vector<at::Tensor> first;  // gradients
  for (int i = 0; i < 30; ++i) {
    net->zero_grad(/*set_to_none=*/true);
    run_exported(*net, {tokens})[0].square().sum().backward();
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad());
    if (first.empty()) first = gradients;
    for (size_t k = 0; k < gradients.size(); ++k) {
      if (gradients[k].defined()) CHECK(at::equal(gradients[k], first[k]));
    }
  }
  at::set_num_threads(threads);
}

TEST_CASE("a parameter behind a result that no loss takes has no gradient, not one of zeros") {
  const auto net = exported(nets().path("two"), kCompiled);
  net->train();
  const auto outputs = run_exported(*net, {at::randn({4, 3}), at::randn({4, 5})});
  outputs[1].sum().backward();
  for (const auto& parameter : net->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(parameter.value().grad().defined() == parameter.key().starts_with("a."));
  }
}

TEST_CASE("gradients of gradients of compiled passes are refused") {
  const auto net = exported(nets().path("two"), kCompiled);
  net->train();
  const auto outputs = run_exported(*net, {at::randn({4, 3}), at::randn({4, 5})});
  const std::string message = message_of([&] {
    torch::autograd::grad({outputs[0].sum()}, net->parameters(), {}, /*retain_graph=*/true,
                          /*create_graph=*/true, /*allow_unused=*/true);
  });
  CHECK(message.find("two.pt2: gradients of gradients are not compiled: compiled: false") !=
        std::string::npos);
}

TEST_CASE("inputs on another device than the passes' are refused") {
  const auto net = exported(nets().path("two"), kCompiled);
  const auto meta = [](int64_t size) {
    return at::empty({2, size}, at::TensorOptions(at::kFloat).device(at::kMeta));
  };
  CHECK(message_of([&] {
          run_exported(*net, {meta(3), meta(5)});
        })
            .ends_with("two.pt2: its passes were compiled for cpu, and an input is on meta: "
                       "compiled: false"));
}

TEST_CASE("parameters that were frozen at the export, and memory in another order, are refused") {
  const auto net = exported(nets().path("blocks"), kCompiled);
  net->train();
  const at::Tensor input = at::randn({4, 4, 6, 6});
  net->named_parameters()["frozen.weight"].requires_grad_(true);
  CHECK(message_of([&] { run_exported(*net, {input}); })
            .ends_with("blocks.pt2: frozen.weight was frozen when the passes were compiled, and is "
                       "not now"));
  const auto other = exported(nets().path("blocks"), kCompiled);
  other->train();
  {
    const at::NoGradGuard no_grad;
    at::Tensor weight = other->named_parameters()["blocks.0.conv.weight"];
    weight.set_data(weight.contiguous(at::MemoryFormat::ChannelsLast));
  }
  CHECK(message_of([&] { run_exported(*other, {input}); })
            .ends_with("blocks.pt2: blocks.0.conv.weight lies in memory in another order than it "
                       "was compiled for: compiled passes choose it themselves, so without "
                       "channels_last"));
}

TEST_CASE("inputs in any order in memory are taken, those of other types and sizes refused") {
  const auto net = exported(nets().path("blocks"), kCompiled);
  net->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::randn({4, 4, 6, 6});
  const at::Tensor expected = run_exported(*net, {input})[0];
  CHECK(at::equal(run_exported(*net, {input.contiguous(at::MemoryFormat::ChannelsLast)})[0],
                  expected));
  CHECK(
      message_of([&] { run_exported(*net, {input.to(at::kDouble)}); })
          .ends_with("blocks.pt2: the input 0 was compiled as Float of 4 dimensions, and is Double "
                     "of 4"));
  CHECK(message_of([&] {
          run_exported(*net, {at::ones({2, 3, 6, 6})});
        }).find("it was exported for an input x [*, 4, *, *], and got [2, 3, 6, 6]") !=
        std::string::npos);
}

}  // namespace compiled_test
}  // namespace stepop
