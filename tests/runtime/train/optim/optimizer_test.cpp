#include "runtime/train/optim/optimizer.h"
#include "runtime/train/networks/networks.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/train/optim/update.h"
#include "tests/places.h"
#include "tests/runtime/train/optim/networks.h"

namespace stepop {
namespace optimizer_test {

using namespace test_networks;

std::unique_ptr<Optimizer> make(const std::string& text, NamedParameters parameters) {
  return optimizers().build(config_of("optimizer: " + text), "optimizer", std::move(parameters));
}

void refused(const std::string& text, const std::string& message) {
  CHECK_THROWS_WITH_AS(make(text, TestLayer().parameters()),
                       ("test.yaml:1: optimizer" + message).c_str(), UsageError);
}

/// Compares the optimizers of a file of tests/data/optim with the Python classes that made it.
void check_trajectories(const std::string& of, size_t cases) {
  const SafetensorsFile file =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/optim/" + of + ".safetensors");
  REQUIRE(file.metadata.size() == cases);
  for (const auto& [name, text] : file.metadata) {
    INFO(name);
    NamedParameters parameters;
    for (const auto& [key, start] : file.tensors) {
      if (!key.starts_with("start/")) continue;
      // As in a network with channels_last.
      const auto format =
          start.dim() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
      parameters.emplace_back(key.substr(6), start.clone(format).requires_grad_());
    }
    StepClock clock;
    Update update(config_of(text), parameters, clock);
    double largest = 0;
    double largest_of_muon = 0;
    for (; clock.global_step < 20; ++clock.global_step) {
      for (auto& [parameter, tensor] : parameters) {
        const bool is_missing =
            name.ends_with("missing") && parameter == "fc.bias" && clock.global_step % 3 != 1;
        if (is_missing) continue;
        tensor.mutable_grad() = file.tensors.at("gradient/" + parameter)[clock.global_step].clone();
      }
      update.apply();
      for (const auto& [parameter, tensor] : parameters) {
        const auto& expected = file.tensors.at(name + "/" + parameter)[clock.global_step];
        double& place = name.starts_with("muon") && tensor.dim() > 1 ? largest_of_muon : largest;
        place = std::max(place, (tensor.detach() - expected).abs().max().item<double>());
      }
      for (const auto& [tensor, average] : update.optimizer().averages()) {
        const auto place = std::ranges::find_if(
            parameters, [&](const auto& entry) { return entry.second.is_same(tensor); });
        const auto& expected =
            file.tensors.at(name + "/averages/" + place->first)[clock.global_step];
        largest = std::max(largest, (average - expected).abs().max().item<double>());
      }
    }
    CHECK(largest < 2e-6);  // sums in another order
    // In bfloat16. The kind of processor that made the file gets the same bits.
    CHECK(largest_of_muon < 1e-3);
  }
}

TEST_CASE("SGD, Adam and its kin go the way of torch.optim's") {
  check_trajectories("trajectories", 47);
}

TEST_CASE("Muon and Adafactor go the way of torch.optim's") { check_trajectories("matrices", 8); }

TEST_CASE("ScheduleFreeAdamW and its averages go the way of the package schedulefree") {
  check_trajectories("schedule_free", 5);
}

TEST_CASE("parameters of several types and of strange strides are updated in one step") {
  TestLayer layer;
  const auto wide = at::ones({2, 3}, at::kDouble).requires_grad_();
  const auto turned = at::ones({3, 2}).t().requires_grad_();
  NamedParameters parameters = layer.parameters();
  parameters.emplace_back("wide", wide);
  parameters.emplace_back("turned", turned);
  const auto half = at::ones({2}, at::kBFloat16).requires_grad_();
  parameters.emplace_back("half", half);
  const auto optimizer = make("{class: SGD, lr: 1}", parameters);
  const auto gradient = at::arange(6, at::kDouble).reshape({2, 3});
  wide.mutable_grad() = gradient;
  turned.mutable_grad() = gradient.to(at::kFloat);
  half.mutable_grad() = at::ones({2}, at::kBFloat16) * 0.25;
  optimizer->step(0);
  CHECK(at::equal(half.detach(), at::ones({2}, at::kBFloat16) * 0.75));
  CHECK(at::equal(wide.detach(), 1 - gradient));
  CHECK(at::equal(turned.detach(), (1 - gradient).to(at::kFloat)));
}

TEST_CASE("a parameter without a gradient stays, and so does its count of updates") {
  TestLayer layer;
  const auto optimizer = make("Adam", layer.parameters());
  const at::Tensor bias = layer.bias.detach().clone();
  for (int64_t step = 0; step < 3; ++step) {
    layer.weight.mutable_grad() = at::ones({4, 3});
    optimizer->step(step);
  }
  CHECK(at::equal(layer.bias.detach(), bias));
  CHECK(optimizer->state().at("fc.weight.step").item<float>() == 3);
  CHECK(optimizer->state().at("fc.bias.step").item<float>() == 0);
  CHECK(layer.bias._version() == 0);
  CHECK(layer.weight._version() > 0);
}

TEST_CASE("a group may have several patterns") {
  TestLayer layer;
  NamedParameters parameters = layer.parameters();
  const auto scale = at::ones({2}).requires_grad_();
  parameters.emplace_back("scale", scale);
  const auto optimizer =
      make("{class: SGD, lr: 1, groups: [{match: [\"bias$\", \"^scale$\"], lr: 0.5}]}", parameters);
  CHECK(optimizer->lrs(0) == std::vector<double>{0.5, 1});
  for (auto& [name, tensor] : parameters) tensor.mutable_grad() = at::ones_like(tensor);
  const at::Tensor weight = layer.weight.detach().clone();
  optimizer->step(0);
  CHECK(at::equal(scale.detach(), at::ones({2}) * 0.5));
  CHECK(at::equal(layer.weight.detach(), weight - 1));
}

TEST_CASE("a group may name parameters with and without their network") {
  TestLayer layer;
  const auto lrs = [](const std::string& match, const NamedParameters& parameters) {
    const auto optimizer =
        make("{class: SGD, lr: 1, groups: [{match: \"" + match + "\", lr: 0.5}]}", parameters);
    for (const auto& [name, tensor] : parameters) tensor.mutable_grad() = at::ones_like(tensor);
    std::vector<bool> is_in_group(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor before = parameters[i].second.detach().clone();
      optimizer->step(0);
      is_in_group[i] = at::allclose(parameters[i].second.detach(), before - 0.5);
    }
    return is_in_group;
  };
  NamedParameters of_one = layer.parameters();
  of_one.networks = {"model"};
  CHECK(lrs("^fc.bias", of_one) == std::vector<bool>{false, true});
  CHECK(lrs("^model.fc.bias", of_one) == std::vector<bool>{false, true});
  // A name as the update has it counts first: this one leaves the bias out.
  CHECK(lrs("^(?!fc.bias)", of_one) == std::vector<bool>{true, false});
  NamedParameters of_two = {{"a.fc.weight", layer.weight}, {"b.fc.bias", layer.bias}};
  of_two.networks = {"a", "b"};
  CHECK(lrs("^b.fc", of_two) == std::vector<bool>{false, true});
  CHECK(lrs("^fc.bias", of_two) == std::vector<bool>{false, true});
}

TEST_CASE("a state that is cleared is that of a new optimizer") {
  for (const char* text :
       {"{class: SGD, lr: 0.1, momentum: 0.9, dampening: 0.5}", "{class: Adam, lr: 0.1}", "LARS",
        "{class: Muon, lr: 0.1}", "{class: Adafactor, lr: 0.1}", "ScheduleFreeAdamW", "NAdam",
        "RAdam", "Adamax", "Adadelta"}) {
    INFO(text);
    TestLayer layer;
    const auto used = make(text, layer.parameters());
    const auto step = [](Optimizer& optimizer, TestLayer& of) {
      of.weight.mutable_grad() = at::ones({4, 3});
      of.bias.mutable_grad() = at::ones({4}) * 0.5;
      optimizer.step(0);
    };
    step(*used, layer);
    step(*used, layer);
    used->clear_state();
    for (const auto& [name, tensor] : used->state()) CHECK(tensor.eq(0).all().item<bool>());
    TestLayer other;
    other.weight = layer.weight.detach().clone().requires_grad_();
    other.bias = layer.bias.detach().clone().requires_grad_();
    const auto fresh = make(text, other.parameters());
    step(*used, layer);
    step(*fresh, other);
    CHECK(at::equal(layer.weight, other.weight));
    CHECK(at::equal(layer.bias, other.bias));
  }
}

TEST_CASE("tied weights are updated once") {
  TestLayer layer;
  const auto optimizer = make("{class: SGD, lr: 1}", {{"in", layer.bias}, {"out", layer.bias}});
  CHECK(optimizer->parameters().size() == 1);
  CHECK(optimizer->parameters()[0].first == "in");
  const at::Tensor before = layer.bias.detach().clone();
  layer.bias.mutable_grad() = at::ones({4});
  optimizer->step(0);
  CHECK(at::equal(layer.bias.detach(), before - 1));
}

TEST_CASE("a graph that was built before an update cannot be walked after it") {
  for (const char* name :
       {"SGD", "Adam", "AdamW", "Muon", "Adafactor", "ScheduleFreeAdamW", "NAdam", "Adadelta"}) {
    TestLayer layer;
    const auto input = test_input(2).requires_grad_();
    const auto loss = layer.forward(input).square().mean();
    const auto optimizer = make(name, layer.parameters());
    layer.weight.mutable_grad() = at::ones({4, 3});
    optimizer->step(0);
    std::string message;
    try {
      loss.backward();
    } catch (const std::exception& error) {
      message = error.what();
    }
    CHECK(message.find("one of the variables needed for gradient computation has been modified by "
                       "an inplace operation") != std::string::npos);
  }
}

TEST_CASE("an optimizer's state has the names that torch.optim gives it") {
  const auto names = [](const std::string& text) {
    std::string list;
    for (const auto& [name, tensor] : make(text, {{"w", TestLayer().weight}})->state()) {
      list += name + " ";
    }
    return list;
  };
  CHECK(names("SGD") == "w.step ");
  CHECK(names("{class: SGD, momentum: 0.9}") == "w.momentum_buffer w.step ");
  CHECK(names("Adam") == "w.exp_avg w.exp_avg_sq w.step ");
  CHECK(names("{class: AdamW, amsgrad: true}") ==
        "w.exp_avg w.exp_avg_sq w.max_exp_avg_sq w.step ");
  CHECK(names("Muon") == "w.momentum_buffer w.step ");
  CHECK(names("{class: Muon, groups: [{match: w, adapt: false}]}") ==
        "w.exp_avg w.exp_avg_sq w.step ");
  CHECK(names("Adafactor") == "w.col_var w.row_var w.step ");
  CHECK(names("ScheduleFreeAdamW") == "w.exp_avg_sq w.lr_max w.step w.weight_sum w.z ");
  const auto bias = make("Adafactor", {{"b", TestLayer().bias}})->state();
  CHECK(bias.size() == 2);
  CHECK(bias.contains("b.variance"));
}

TEST_CASE("Adafactor keeps a number for each row and column of the last two dimensions") {
  const auto kernel = at::ones({4, 3, 2, 5}).requires_grad_();
  const State state = make("Adafactor", {{"w", kernel}})->state();
  CHECK(state.at("w.row_var").sizes() == at::IntArrayRef({4, 3, 2, 1}));
  CHECK(state.at("w.col_var").sizes() == at::IntArrayRef({4, 3, 1, 5}));
}

TEST_CASE("a state of Muon does not fit when other parameters are AdamW's") {
  TestLayer layer;
  const auto all = make("Muon", layer.parameters());
  const auto none =
      make("{class: Muon, groups: [{match: weight, adapt: false}]}", layer.parameters());
  CHECK_THROWS_WITH_AS(
      none->load_state(all->state()),
      "the state does not fit the optimizer:\n"
      "  \"fc.weight.exp_avg\" is missing\n"
      "  \"fc.weight.exp_avg_sq\" is missing\n"
      "  \"fc.weight.momentum_buffer\" is unknown to this optimizer\n"
      "Give the config that it was trained with; or start a new run with these weights: -r",
      Error);
}

TEST_CASE("an optimizer that does nothing, as in an evaluation, takes no memory for averages") {
  const TensorMemory memory;
  const NamedParameters parameters = {{"weight", at::ones({1000}, at::kFloat).requires_grad_()}};
  const auto optimizer = make("{class: Adam, amsgrad: true}", parameters);
  CHECK(memory.now(c10::kCPU) < 4100);
  CHECK(optimizer->state().at("weight.exp_avg").numel() == 1000);
  CHECK(memory.now(c10::kCPU) > 16000);
}

TEST_CASE("a state of other parameters is refused and changes nothing") {
  TestLayer layer;
  const auto optimizer = make("{class: SGD, momentum: 0.9}", layer.parameters());
  State state;
  for (const auto& [name, tensor] : optimizer->state()) state[name] = at::ones(tensor.sizes());
  state.erase("fc.bias.momentum_buffer");
  state["fc.weight.momentum_buffer"] = at::ones({3, 4});
  state["old.step"] = at::ones({});
  CHECK_THROWS_WITH_AS(
      optimizer->load_state(state),
      "the state does not fit the optimizer:\n"
      "  \"fc.weight.momentum_buffer\" has the shape [3, 4], expected [4, 3]\n"
      "  \"fc.bias.momentum_buffer\" is missing\n"
      "  \"old.step\" is unknown to this optimizer\n"
      "Give the config that it was trained with; or start a new run with these weights: -r",
      Error);
  CHECK(optimizer->state().at("fc.weight.step").item<float>() == 0);
}

TEST_CASE("a long list of what does not fit is cut") {
  NamedParameters many;
  for (int i = 0; i < 12; ++i) many.emplace_back("p" + std::to_string(i), at::zeros({1}));
  CHECK_THROWS_WITH_AS(
      make("SGD", many)->load_state({}),
      "the state does not fit the optimizer:\n"
      "  \"p0.step\" is missing\n  \"p1.step\" is missing\n  \"p2.step\" is missing\n"
      "  \"p3.step\" is missing\n  \"p4.step\" is missing\n  \"p5.step\" is missing\n"
      "  \"p6.step\" is missing\n  \"p7.step\" is missing\n  \"p8.step\" is missing\n"
      "  \"p9.step\" is missing\n  and 2 more\n"
      "Give the config that it was trained with; or start a new run with these weights: -r",
      Error);
}

TEST_CASE("bad values of an optimizer are refused with their place") {
  refused("Adm",
          ": unknown optimizer \"Adm\": did you mean \"Adam\"? Known are: Adam, AdamW, NAdam, "
          "RAdam, ASGD, Adamax, LAMB, LARS, SGD, Lion and 9 more: stepop list optimizer");
  refused("{class: Adam, lr: -1}", "/lr: expected 0 or more, found -1");
  refused("{class: Adam, lr: .nan}", "/lr: expected 0 or more, found nan");
  refused("{class: Adam, lr: {class: constant, value: -1}}", "/lr: expected 0 or more, found -1");
  refused("{class: Adam, weight_decay: -0.1}", "/weight_decay: expected 0 or more, found -0.1");
  refused("{class: Adam, eps: -1}", "/eps: expected 0 or more, found -1");
  refused("{class: Adam, betas: [0.9]}",
          "/betas: expected two numbers, each from 0 to below 1, found [0.9]");
  refused("{class: Adam, betas: [0.9, 1]}",
          "/betas: expected two numbers, each from 0 to below 1, found [0.9, 1]");
  refused("{class: SGD, momentum: -0.9}", "/momentum: expected 0 or more, found -0.9");
  refused("{class: SGD, nesterov: true}",
          "/nesterov: needs a momentum above 0 and a dampening of 0, found a momentum of 0 and a "
          "dampening of 0");
  refused("{class: SGD, groups: {match: x}}",
          "/groups: expected a list of {match: REGEX, lr: ..., weight_decay: ...}, found a map");
  refused("{class: SGD, groups: [{}]}",
          "/groups/0/match: missing; give it in a config, or on the command line as "
          "--optimizer/groups/0/match VALUE");
  refused(
      "{class: SGD, groups: [{match: biass}]}",
      "/groups/0/match: \"biass\" matches no parameter; the parameters are: fc.weight, fc.bias");
  refused("{class: SGD, groups: [{match: fc}, {match: bias}]}",
          "/groups/1/match: \"bias\" matches no parameter that an earlier group leaves; the "
          "parameters are: fc.weight, fc.bias");
  refused("{class: SGD, groups: [{match: [x, y]}]}",
          "/groups/0/match: [x, y] matches no parameter; the parameters are: fc.weight, "
          "fc.bias");
  refused("{class: SGD, groups: [{match: []}]}",
          "/groups/0/match: expected a regular expression, found none");
  refused("{class: LARS, trust_coefficient: 0}",
          "/trust_coefficient: expected more than 0, found 0");
  refused("{class: Muon, ns_coefficients: [1, 2]}",
          "/ns_coefficients: expected three numbers, found [1, 2]");
  refused("{class: Muon, ns_steps: 100}", "/ns_steps: expected a number from 0 to 99, found 100");
  refused("{class: Muon, adjust_lr_fn: none}",
          "/adjust_lr_fn: expected original or match_rms_adamw, found \"none\"");
  refused("{class: Muon, adamw_lr: -1}", "/adamw_lr: expected 0 or more, found -1");
  refused("{class: Muon, groups: [{match: bias, adamw_lr: -1}]}",
          "/groups/0/adamw_lr: expected 0 or more, found -1");
  refused("{class: Muon, adamw_betas: [0.9]}",
          "/adamw_betas: expected two numbers, each from 0 to below 1, found [0.9]");
  refused("{class: ScheduleFreeAdamW, betas: [0, 0.9]}",
          "/betas: expected a first number above 0, found 0");
  refused("{class: Adafactor, beta2_decay: 0.8}", "/beta2_decay: expected 0 or less, found 0.8");
  refused("{class: Adafactor, d: 0.5}", "/d: expected 1 or more, found 0.5");
  refused("{class: Adafactor, eps: 1e-8}",
          "/eps: expected two numbers such as [1e-30, 1e-3], found 1.0e-08");
  refused("{class: Adafactor, eps: [1e-30, -1]}", "/eps/1: expected 0 or more, found -1");
  refused("{class: LAMB, max_weight_norm: -1}", "/max_weight_norm: expected more than 0, found -1");
  refused("{class: SGD, groups: [{match: bias, lr: -1}]}",
          "/groups/0/lr: expected 0 or more, found -1");
  CHECK_THROWS_AS(make("{class: SGD, groups: [{match: '(bias'}]}", TestLayer().parameters()),
                  UsageError);
}

TEST_CASE("misspelt keys of an optimizer and of its groups are found") {
  const Config config = config_of(
      "optimizer: {class: Adam, beta: [0.5, 0.9], groups: [{match: bias, weight_decy: 0}]}");
  StepClock clock;
  const Update update(config.at("optimizer"), TestLayer().parameters(), clock);
  CHECK(config.unknown_keys() ==
        "test.yaml:1: unknown key \"optimizer/beta\": did you mean \"optimizer/betas\"?\n"
        "test.yaml:1: unknown key \"optimizer/groups/0/weight_decy\": did you mean "
        "\"optimizer/groups/0/weight_decay\"?");
}

TEST_CASE("parameters that cannot be optimised are refused") {
  const auto refused_parameters = [](const NamedParameters& parameters, const char* message) {
    CHECK_THROWS_WITH_AS(make("Adam", parameters), message, Error);
  };
  const TestLayer layer;
  refused_parameters({}, "an optimizer was given no parameters: does the network have any?");
  refused_parameters({{"w", layer.weight}, {"w", layer.bias}},
                     "an optimizer was given two parameters of the name \"w\": give the networks' "
                     "parameters different prefixes");
  refused_parameters({{"w", at::Tensor()}}, "parameter \"w\" is undefined");
  refused_parameters({{"w", at::ones({2}, at::kLong)}},
                     "parameter \"w\" is of type Long; only floating-point numbers can be "
                     "optimised: make it a buffer");
  refused_parameters({{"w", layer.weight * 2}},
                     "parameter \"w\" was computed from other tensors and gets no gradient of its "
                     "own: give the tensors that it was computed from, or detach() it");
}

}  // namespace optimizer_test
}  // namespace stepop
