#include "runtime/tools/graph/network_graph.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include "runtime/tools/graph/receptive_field.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace network_graph_test {

std::shared_ptr<torch::nn::Module> build(const std::string& params) {
  auto network = models().build(test_config("model: " + params), "model");
  network->eval();
  return network;
}

NetworkGraph graph(const std::string& params, const NetworkInputs& inputs) {
  return graph_of(trace_network(*build(params), "Test", inputs));
}

TEST_CASE("a graph shows each operation with its layer, its result and its parameters") {
  const auto shown =
      graph("{class: LeNet, image_size: [8, 8], padding: [2, 2]}", {at::zeros({3, 1, 8, 8})});
  CHECK(graph_table(shown) ==
        "layer  operation   result         parameters\n"
        "input  input       [3, 1, 8, 8]\n"
        "conv1  conv2d      [3, 6, 8, 8]          156\n"
        "       relu        [3, 6, 8, 8]\n"
        "       max_pool2d  [3, 6, 4, 4]\n"
        "conv2  conv2d      [3, 16, 4, 4]       2,416\n"
        "       relu        [3, 16, 4, 4]\n"
        "       max_pool2d  [3, 16, 2, 2]\n"
        "       flatten     [3, 64]\n"
        "fc1    linear      [3, 120]            7,800\n"
        "       relu        [3, 120]\n"
        "fc2    linear      [3, 84]            10,164\n"
        "       relu        [3, 84]\n"
        "fc3    linear      [3, 10]               850\n");
  CHECK(shown.outputs == std::vector<size_t>{shown.steps.size() - 1});
}

TEST_CASE("an operation without parameters stands in the module around its neighbours") {
  const auto shown = graph("{class: MLP, inputs: 4, hidden: [3], classes: 2}", {at::zeros({2, 4})});
  LoggedGraph logged;
  add_to(logged, "model", shown);
  std::vector<std::string> names;
  for (const auto& node : logged.nodes) names.push_back(node.name);
  CHECK(names == std::vector<std::string>{"model/input", "model/flatten", "model/layers/0/linear",
                                          "model/layers/relu", "model/layers/1/linear",
                                          "model/output_0"});
  CHECK(logged.nodes.at(2).inputs == std::vector<std::string>{"model/flatten"});
  CHECK(logged.nodes.at(2).parameters == 15);
}

TEST_CASE("the receptive field of a discriminator is that of its kernels and strides") {
  // https://github.com/junyanz/pytorch-CycleGAN-and-pix2pix: 70 x 70 of three strided layers
  for (const auto& [layers, pixels] :
       std::vector<std::pair<int, int64_t>>{{1, 10}, {2, 16}, {3, 34}, {4, 70}, {5, 142}}) {
    CAPTURE(layers);
    const at::Tensor image = at::zeros({1, 3, 256, 256});
    const auto field = receptive_field(
        graph(fmt::format("{{class: PatchGan, base_channels: 1, n_layers: {}}}", layers),
              {image, image}));
    REQUIRE(field);
    CHECK(field->height == pixels);
    CHECK(field->width == pixels);
  }
  const at::Tensor image = at::zeros({1, 3, 64, 32});
  const auto field =
      receptive_field(graph("{class: PatchGan, base_channels: 1, n_layers: 3}", {image, image}));
  CHECK(receptive_field_text(*field) ==
        "14 x 6 outputs for 64 x 32 pixels; each sees 34 x 34, beside what normalizations measure");
}

TEST_CASE("a network that ends in a linear layer, or takes no images, has no receptive field") {
  CHECK_FALSE(receptive_field(
      graph("{class: LeNet, image_size: [8, 8], padding: [2, 2]}", {at::zeros({1, 1, 8, 8})})));
  CHECK_FALSE(receptive_field(
      graph("{class: MLP, inputs: 4, hidden: [3], classes: 2}", {at::zeros({1, 4})})));
}

TEST_CASE("images that are made larger in between are seen in pixels of the first one") {
  // 3 x 3, twice as large, 3 x 3: from 2 of 3 wide places down to one in the middle
  const auto field = receptive_field(
      NetworkGraph{.steps = {{.op = "input", .layer = "x", .shapes = {{1, 1, 8, 8}}},
                             {.op = "conv2d",
                              .from = {0},
                              .shapes = {{1, 1, 8, 8}},
                              .kernel = {3, 3},
                              .stride = {1, 1},
                              .dilation = {1, 1}},
                             {.op = "upsample_nearest2d", .from = {1}, .shapes = {{1, 1, 16, 16}}},
                             {.op = "conv2d",
                              .from = {2},
                              .shapes = {{1, 1, 16, 16}},
                              .kernel = {3, 3},
                              .stride = {1, 1},
                              .dilation = {2, 2}}},
                   .outputs = {3}});
  REQUIRE(field);
  CHECK(field->height == 5);
}

}  // namespace network_graph_test
}  // namespace stepop
