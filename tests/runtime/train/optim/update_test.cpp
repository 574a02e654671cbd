#include "runtime/train/optim/update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "tests/message_of.h"
#include "tests/runtime/train/optim/networks.h"

namespace stepop {
namespace update_test {

using namespace test_networks;

/// Training steps `from` to `to` on batches of 8.
void train(Update& update, StepClock& clock, const TestLayer& layer, int64_t from, int64_t to) {
  for (clock.global_step = from; clock.global_step < to; ++clock.global_step) {
    update.step(layer.forward(test_input(8, clock.global_step)).square().mean());
  }
}

bool is_equal(const TestLayer& a, const TestLayer& b) {
  return at::equal(a.weight, b.weight) && at::equal(a.bias, b.bias);
}

TEST_CASE("a step lowers the loss, counts and leaves no gradients") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: 0.1}"), layer.parameters(), clock);
  const auto loss = [&] { return layer.forward(test_input(8)).square().mean(); };
  const double before = loss().item<double>();
  update.step(loss());
  CHECK(loss().item<double>() < before);
  CHECK(update.count() == 1);
  CHECK_FALSE(layer.weight.grad().defined());
  CHECK_FALSE(layer.bias.grad().defined());
}

TEST_CASE("a saved and loaded state goes on with the same bits") {
  for (const char* text :
       {"{class: SGD, lr: 0.1, momentum: 0.9, dampening: 0.1}", "{class: Adam, lr: 0.1}",
        "{class: AdamW, amsgrad: true, lr: {class: cosine, from: 0.1, steps: 20}}",
        "{class: Muon, lr: 0.1, adamw_lr: {class: cosine, from: 0.1, steps: 20}}",
        "{class: Adafactor, lr: {class: cosine, from: 0.1, steps: 20}}",
        "{class: ScheduleFreeAdamW, lr: {class: warmup, to: 0.1, steps: 5}}"}) {
    INFO(text);
    const TestLayer whole;
    StepClock clock;
    Update update(config_of(text), whole.parameters(), clock);
    train(update, clock, whole, 0, 10);

    State saved;
    for (const auto& [name, tensor] : update.state()) saved[name] = tensor.clone();
    TestLayer resumed;
    resumed.weight = whole.weight.detach().clone().requires_grad_();
    resumed.bias = whole.bias.detach().clone().requires_grad_();
    StepClock resumed_clock;
    Update resumed_update(config_of(text), resumed.parameters(), resumed_clock);
    resumed_update.load_state(saved);
    CHECK(resumed_update.count() == 10);

    train(update, clock, whole, 10, 20);
    CHECK_FALSE(is_equal(whole, resumed));
    train(resumed_update, resumed_clock, resumed, 10, 20);
    CHECK(is_equal(whole, resumed));
    CHECK(resumed_update.count() == 20);
    CHECK(resumed_update.lr() == update.lr());
  }
}

TEST_CASE("averages begin anew in a step that says so, whenever the run was stopped") {
  const std::string adam = "{class: Adam, lr: 0.1}";
  const std::string clearing = "{class: Adam, lr: 0.1, clear_state_at: [4, 7]}";
  const auto run = [](const std::string& text, const std::vector<int64_t>& steps, int64_t stop) {
    TestLayer layer;
    StepClock clock;
    auto update = std::make_unique<Update>(config_of(text), layer.parameters(), clock);
    for (const int64_t step : steps) {
      if (step == stop) {
        State saved;
        for (const auto& [name, tensor] : update->state()) saved[name] = tensor.clone();
        update = std::make_unique<Update>(config_of(text), layer.parameters(), clock);
        update->load_state(saved);
      }
      train(*update, clock, layer, step, step + 1);
    }
    return layer;
  };
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const TestLayer whole = run(clearing, all, -1);
  CHECK_FALSE(is_equal(whole, run(adam, all, -1)));
  for (const int64_t stop : all) CHECK(is_equal(whole, run(clearing, all, stop)));
  // Updates that skip the step 4 clear in the next one.
  const std::vector<int64_t> some = {0, 2, 6, 8};
  const TestLayer rare = run(clearing, some, -1);
  CHECK(is_equal(rare, run("{class: Adam, lr: 0.1, clear_state_at: [6, 8]}", some, -1)));
  for (const int64_t stop : some) CHECK(is_equal(rare, run(clearing, some, stop)));
  // A config that has the key from step 5 on clears nothing that is over.
  TestLayer changed;
  StepClock clock;
  Update before(config_of(adam), changed.parameters(), clock);
  train(before, clock, changed, 0, 5);
  Update after(config_of(clearing), changed.parameters(), clock);
  after.load_state(before.state());
  train(after, clock, changed, 5, 7);
  CHECK(is_equal(changed, run(adam, {0, 1, 2, 3, 4, 5, 6}, -1)));
}

TEST_CASE("gradients that wait for a later step are a part of the state") {
  const auto layer_like = [](const TestLayer& other) {
    TestLayer layer;
    layer.weight = other.weight.detach().clone().requires_grad_();
    layer.bias = other.bias.detach().clone().requires_grad_();
    return layer;
  };
  const auto loss = [](const TestLayer& layer, int64_t batch) {
    return layer.forward(test_input(8, batch)).square().mean();
  };
  for (const bool is_spoilt : {false, true}) {
    CAPTURE(is_spoilt);
    const TestLayer whole;
    StepClock clock;
    const auto make = [&](const TestLayer& layer) {
      return Update(config_of("{class: SGD, lr: 0.1}"), layer.parameters(), clock, OnNan::kSkip);
    };
    Update update = make(whole);
    update.backward(loss(whole, 0));
    if (is_spoilt) update.backward(loss(whole, 1) * std::numeric_limits<double>::quiet_NaN());
    State saved;
    for (const auto& [name, tensor] : update.state()) saved[name] = tensor.clone();
    CHECK(saved.contains("fc.weight.grad"));
    CHECK(saved.contains("spoilt") == is_spoilt);

    const TestLayer resumed = layer_like(whole);
    Update resumed_update = make(resumed);
    resumed_update.load_state(saved);
    for (const auto& [one, layer] :
         {std::pair{&update, &whole}, std::pair{&resumed_update, &resumed}}) {
      one->backward(loss(*layer, 2));
      one->apply();
    }
    CHECK(is_equal(whole, resumed));
    CHECK(resumed_update.count() == (is_spoilt ? 0 : 1));
    CHECK_FALSE(resumed_update.state().contains("fc.weight.grad"));

    saved["fc.weight.grad"] = at::ones({2});
    const TestLayer other = layer_like(whole);
    Update other_update = make(other);
    CHECK(message_of([&] { other_update.load_state(saved); })
              .starts_with(
                  "the state does not fit the update: \"fc.weight.grad\" is not of the shape ["));
  }
}

TEST_CASE("four accumulated batches of 2 make the step of one batch of 8") {
  const TestLayer large;
  const TestLayer small;
  StepClock large_clock;
  StepClock small_clock;
  small_clock.micro_batches = 4;
  const Config config = config_of("{class: Adam, lr: 0.1, clip_norm: 0.5}");
  Update large_update(config, large.parameters(), large_clock);
  Update small_update(config, small.parameters(), small_clock);
  train(large_update, large_clock, large, 0, 5);
  for (; small_clock.global_step < 5; ++small_clock.global_step) {
    const at::Tensor input = test_input(8, small_clock.global_step);
    for (small_clock.micro_batch = 0; small_clock.micro_batch < 4; ++small_clock.micro_batch) {
      const at::Tensor part = input.narrow(0, small_clock.micro_batch * 2, 2);
      small_update.step(small.forward(part).square().mean());
    }
  }
  CHECK(small_update.count() == 5);
  CHECK(large.weight.allclose(small.weight, 1e-5, 1e-6));
  CHECK(large.bias.allclose(small.bias, 1e-5, 1e-6));
  CHECK(large_update.grad_norm().allclose(small_update.grad_norm(), 1e-5));
}

TEST_CASE("a loss gives gradients to its own update's parameters only") {
  const TestLayer generator;
  const TestLayer discriminator;
  StepClock clock;
  Update update(config_of("SGD"), generator.parameters(), clock);
  const auto made = generator.forward(test_input(8)).narrow(1, 0, 3);
  update.step(discriminator.forward(made).mean());
  CHECK(update.count() == 1);
  CHECK_FALSE(discriminator.weight.grad().defined());
}

TEST_CASE("an accumulated loss is weighted by its share of the step's examples") {
  StepClock clock;
  CHECK(clock.loss_weight() == 1);
  clock.micro_batches = 3;
  CHECK(clock.loss_weight() == 1.0 / 3);
  // Equal batches have the very weight that they have without their sizes.
  for (const int64_t size : {1, 7, 32, 1000003}) {
    clock.batch_examples = size;
    clock.step_examples = 3 * size;
    CHECK(clock.loss_weight() == 1.0 / 3);
  }
  const TestLayer layer;
  Update update(config_of("{class: SGD, lr: 1}"), layer.parameters(), clock);
  const at::Tensor before = layer.bias.detach().clone();
  clock.step_examples = 8;
  for (const int64_t size : {4, 3, 1}) {
    clock.batch_examples = size;
    update.step(layer.forward(test_input(size)).sum() / static_cast<double>(size));
    ++clock.micro_batch;
  }
  CHECK(layer.bias.detach().allclose(before - 1));
}

TEST_CASE("losses are watched until the watch has seen enough") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("SGD"), layer.parameters(), clock);
  int seen = 0;
  update.watch_losses(&update, [&](const WeightedMean&) { return ++seen < 2; });
  train(update, clock, layer, 0, 4);
  CHECK(seen == 2);
  update.watch_losses(&update, [](const WeightedMean&) -> bool { throw Error("no such loss"); });
  CHECK(message_of([&] { train(update, clock, layer, 4, 5); }) == "no such loss");
}

TEST_CASE("two losses can be added up before one update") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: 1}"), layer.parameters(), clock);
  const at::Tensor before = layer.bias.detach().clone();
  const auto output = layer.forward(test_input(8)).sum(0).mean() / 8;
  update.backward(output, /*retain_graph=*/true);
  update.backward(output * 2);
  CHECK(update.count() == 0);
  update.apply();
  CHECK(layer.bias.detach().allclose(before - 0.75));
}

TEST_CASE("a frozen parameter is left alone") {
  TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: Adam, lr: 1}"), layer.parameters(), clock);
  layer.weight.requires_grad_(false);
  const at::Tensor before = layer.weight.clone();
  train(update, clock, layer, 0, 3);
  CHECK(at::equal(layer.weight, before));
  layer.bias.requires_grad_(false);
  const auto loss = at::ones({}).requires_grad_() * 2;
  CHECK_THROWS_WITH_AS(
      update.step(loss),
      "none of the update's parameters requires a gradient; they are: fc.weight, fc.bias", Error);
}

TEST_CASE("the norm of the gradients is the one before clipping") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: 1, clip_norm: 0.1}"), layer.parameters(), clock);
  CHECK(std::isnan(update.grad_norm().item<double>()));  // a log op may ask before the first update
  const at::Tensor weight = layer.weight.detach().clone();
  const at::Tensor bias = layer.bias.detach().clone();
  layer.weight.mutable_grad() = at::full({4, 3}, 2.0);
  layer.bias.mutable_grad() = at::full({4}, 4.0);
  update.apply();
  CHECK(update.grad_norm().item<double>() == doctest::Approx(std::sqrt(12 * 4 + 4 * 16)));
  const auto change = (layer.weight - weight).square().sum() + (layer.bias - bias).square().sum();
  CHECK(change.sqrt().item<double>() == doctest::Approx(0.1).epsilon(1e-5));
}

TEST_CASE("clip_by: group scales each group by its own norm") {
  StepClock clock;
  at::Tensor small = at::zeros({2}).requires_grad_();
  at::Tensor large = at::zeros({2}).requires_grad_();
  Update update(config_of("{class: SGD, lr: 1, clip_norm: 1, clip_by: group, groups: [{match: "
                          "small}]}"),
                {{"small", small}, {"large", large}}, clock);
  // Their gradients are (0.3, 0.4) and (30, 40), of the norms 0.5 and 50.
  const at::Tensor of_small = at::tensor({0.3, 0.4}, at::kFloat);
  const at::Tensor of_large = at::tensor({30.0, 40.0}, at::kFloat);
  update.step((small * of_small + large * of_large).sum());
  CHECK(at::allclose(small.detach(), -of_small));
  CHECK(at::allclose(large.detach(), at::tensor({-0.6, -0.8}, at::kFloat)));
  CHECK(update.grad_norm().item<double>() == doctest::Approx(std::sqrt(0.25 + 2500)));
}

TEST_CASE("an infinite clip_norm measures the norm and clips nothing") {
  const TestLayer plain, measured;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: 0.1}"), plain.parameters(), clock);
  Update measuring(config_of("{class: SGD, lr: 0.1, clip_norm: .inf}"), measured.parameters(),
                   clock);
  train(update, clock, plain, 0, 3);
  train(measuring, clock, measured, 0, 3);
  CHECK(is_equal(plain, measured));
  CHECK(measuring.grad_norm().item<double>() > 0);
  CHECK_FALSE(update.grad_norm().defined());
}

TEST_CASE("the learning rate is that of the last update") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: {class: linear, from: 8, to: 0, steps: 8}}"),
                layer.parameters(), clock);
  clock.global_step = 2;
  CHECK(update.lr() == 6);
  layer.bias.mutable_grad() = at::ones({4});
  update.apply();
  clock.global_step = 3;
  CHECK(update.lr() == 6);
}

TEST_CASE("a loss that cannot be walked back is refused with what to do") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("Adam"), layer.parameters(), clock);
  CHECK_THROWS_WITH_AS(update.step(at::Tensor()), "the loss is an undefined tensor", Error);
  CHECK_THROWS_WITH_AS(
      update.step(layer.forward(test_input(8))),
      "the loss has the shape [8, 4], an update needs one number: take its mean, as "
      "in update.step(loss.mean())",
      Error);
  CHECK_THROWS_WITH_AS(update.step(layer.forward(test_input(8)).mean().detach()),
                       "the loss depends on nothing that requires a gradient: compute it from the "
                       "network's output, without detach() in between and where gradients are "
                       "enabled (in step_op of the train split, or in train_op)",
                       Error);
  const TestLayer other;
  CHECK_THROWS_WITH_AS(
      update.step(other.forward(test_input(8)).mean()),
      "optimizer: an update without any gradient: the loss depends on none of its parameters, "
      "which are: fc.weight, fc.bias",
      Error);
  CHECK(update.count() == 0);
}

TEST_CASE("a graph that was walked back already is an error that says detach()") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: 0.1}"), layer.parameters(), clock);
  const std::string expected =
      "optimizer: the graph of the loss, or a part of it, was used by an earlier backward, which "
      "freed it\n"
      "  a member keeps a tensor from one step to the next: detach() it, as in state_ = "
      "state.detach()\n"
      "  two losses share a part of the graph: add them and call step() once, or backward(first, "
      "/*retain_graph=*/true), backward(second), apply()\n"
      "  step() was called twice with one loss: call it once";
  const at::Tensor loss = layer.forward(test_input(8)).square().mean();
  update.step(loss);
  CHECK(message_of([&] { update.step(loss); }) == expected);

  at::Tensor kept = at::ones({8, 4});
  const auto recurrent_step = [&] {
    kept = (layer.forward(test_input(8)) * kept).tanh();
    update.step(kept.mean());
  };
  recurrent_step();
  CHECK(message_of(recurrent_step) == expected);
  kept = kept.detach();
  recurrent_step();
}

TEST_CASE("an update where gradients are disabled, as in a log op, is refused") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: 0.1}"), layer.parameters(), clock);
  const at::Tensor loss = layer.forward(test_input(8)).square().mean();
  const at::NoGradGuard no_grad;
  CHECK(message_of([&] { update.step(loss); }) ==
        "optimizer: an update belongs in a train op: gradients are disabled here, as they are in "
        "log_op and eval_op");
  CHECK(update.count() == 0);
}

TEST_CASE("a state without a count is refused") {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("Adam"), layer.parameters(), clock);
  State state = update.state();
  state.erase("count");
  CHECK_THROWS_WITH_AS(update.load_state(state),
                       "the state does not fit the update: \"count\", one number, is missing",
                       Error);
}

TEST_CASE("bounds of clipping that are not above 0 are refused with their place") {
  StepClock clock;
  const auto refused = [&](const char* text, const char* message) {
    CHECK_THROWS_WITH_AS(Update(config_of(text), TestLayer().parameters(), clock), message,
                         UsageError);
  };
  refused("{class: Adam, clip_norm: 0}",
          "test.yaml:1: clip_norm: expected a number above 0, found 0; leave the key out for no "
          "clipping");
  refused("{class: Adam, clip_value: -1}",
          "test.yaml:1: clip_value: expected a number above 0, found -1; leave the key out for no "
          "clipping");
}

}  // namespace update_test
}  // namespace stepop
