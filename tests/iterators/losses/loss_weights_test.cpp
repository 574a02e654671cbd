#include "iterators/losses/loss_weights.h"

#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/tensor_values.h"
#include "tests/test_run.h"

namespace stepop::losses {
namespace loss_weights_test {

const std::vector<std::string> kKnown = {"color_L1", "KL"};

LossWeights read(const std::string& losses) {
  return {test_config("losses: " + losses).at("losses"), kKnown};
}

TEST_CASE("a ramp is flat before its start and after its end, and linear between") {
  const LossWeights weights =
      read("{KL: {start_ramp_it: 2000, start_ramp_val: 1, end_ramp_it: 3000, end_ramp_val: 3}}");
  const std::vector<std::pair<int64_t, double>> corners = {
      {0, 1},        {1999, 1}, {2000, 1}, {2001, 1.002}, {2500, 2},
      {2999, 2.998}, {3000, 3}, {3001, 3}, {1'000'000, 3}};
  for (const auto& [step, weight] : corners) {
    CAPTURE(step);
    CHECK(weights.at("KL", step) == doctest::Approx(weight).epsilon(1e-12));
  }
  CHECK(read("{KL: {start_ramp_it: 4, start_ramp_val: 1, end_ramp_it: 5, end_ramp_val: 0}}")
            .at("KL", 5) == 0);
}

TEST_CASE("a loss is on when its key is there, and its weight is a number or a schedule") {
  const LossWeights weights =
      read("{color_L1: {weight: {class: linear, from: 0, to: 1, steps: 10}}}");
  CHECK(weights.has("color_L1"));
  CHECK_FALSE(weights.has("KL"));
  CHECK(weights.at("color_L1", 5) == 0.5);
  CHECK_FALSE(weights.is_only_watched("color_L1"));
  CHECK(message_of([&] { weights.at("KL", 0); }) == "no key \"KL\"; there are: color_L1");
}

TEST_CASE("the total weighs each loss by its weight at the step") {
  const LossWeights weights = read(
      "{color_L1: {weight: 2}, "
      "KL: {start_ramp_it: 0, start_ramp_val: 0, end_ramp_it: 10, end_ramp_val: 1}}");
  const OrderedMap<at::Tensor> values{{"color_L1", at::tensor({1., 2.})},
                                      {"KL", at::tensor({10., 20.})}};
  CHECK((values_of<double>(weights.total(values, 0)) == std::vector<double>{2, 4}));
  CHECK((values_of<double>(weights.total(values, 5)) == std::vector<double>{7, 14}));
  CHECK(message_of([&] { weights.total({}, 0); }) ==
        "the total of no loss: on are color_L1, KL, given were none");
}

TEST_CASE("a loss of the weight 0 is watched only, one that begins with 0 is trained") {
  const LossWeights weights = read(
      "{color_L1: {weight: 0.0}, "
      "KL: {start_ramp_it: 2, start_ramp_val: 0, end_ramp_it: 3, end_ramp_val: 1}}");
  CHECK(weights.is_only_watched("color_L1"));
  CHECK_FALSE(weights.is_only_watched("KL"));
}

TEST_CASE("mistakes in the weights of losses are told with their place") {
  const auto refused = [](const std::string& losses) { return message_of([&] { read(losses); }); };
  CHECK(refused("{color_l1: {weight: 1}}") ==
        "test.yaml:1: losses/color_l1: there is no such loss; there are: color_L1, KL");
  CHECK(refused("{KL: 2}") ==
        "test.yaml:1: losses/KL: expected {weight: 1}, or a ramp {start_ramp_it: 2000, "
        "start_ramp_val: 0, end_ramp_it: 3500, end_ramp_val: 1}, found 2");
  CHECK(refused("{KL: {}}").starts_with("test.yaml:1: losses/KL: expected {weight: 1}"));
  CHECK(refused("{KL: {weight: heavy}}").find("losses/KL/weight") != std::string::npos);
  CHECK(refused("{}") == "test.yaml:1: losses: expected at least one loss of: color_L1, KL");
  CHECK(refused("{KL: {start_ramp_it: 2, start_ramp_val: 0, end_ramp_val: 1, end_ramp_it: 2}}") ==
        "test.yaml:1: losses/KL/end_ramp_it: expected a step after start_ramp_it, 2, found 2");
  CHECK(refused("{KL: {start_ramp_it: 2, start_ramp_val: 0, end_ramp_it: 4}}")
            .find("losses/KL/end_ramp_val") != std::string::npos);
  CHECK(refused("{KL: {weight: 1, start_ramp_it: 2}}") ==
        "test.yaml:1: losses/KL/weight: the weight has a ramp, too: remove either; "
        "`start_ramp_it: !remove` in a later file takes the ramp away");
}

}  // namespace loss_weights_test
}  // namespace stepop::losses
