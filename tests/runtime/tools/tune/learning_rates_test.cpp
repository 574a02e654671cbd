#include "runtime/tools/tune/learning_rates.h"

#include <ATen/core/Tensor.h>
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace learning_rates_test {

/// A loss of 2.3 that falls by `fall` around 1e-3 and grows from 1e-1 on, with noise.
std::vector<RatePoint> test_of(double fall, double noise, double growth = 1) {
  std::vector<RatePoint> points;
  Random random(3);
  for (int i = 0; i < 320; ++i) {
    const double power = -7 + 8.0 * i / 320;
    const double down = fall / (1 + std::exp(-4 * (power + 3)));
    const double up = power > -1 ? growth * std::expm1(3 * (power + 1)) : 0;
    points.push_back({std::pow(10, power), 2.3 - down + up + noise * (2 * random.uniform() - 1)});
  }
  return points;
}

TEST_CASE("the rate where the loss falls fastest is suggested") {
  for (const double noise : {0.0, 0.05, 0.3}) {
    CAPTURE(noise);
    const RateSuggestion suggestion = suggest_rate(test_of(2, noise));
    REQUIRE(suggestion.rate.has_value());
    // The smoothed loss follows some steps behind: at most a power of three.
    CHECK(*suggestion.rate > 0.5e-3);
    CHECK(*suggestion.rate < 4e-3);
  }
}

TEST_CASE("no rate is suggested where the loss does not fall, and the reason says so") {
  const RateSuggestion noise = suggest_rate(test_of(0, 0.3));
  CHECK_FALSE(noise.rate.has_value());
  CHECK(noise.reason.find("no more than its noise of 0.1") != std::string::npos);
  const RateSuggestion short_test = suggest_rate({{1e-7, 2.3}, {2e-7, 2.3}});
  CHECK_FALSE(short_test.rate.has_value());
  CHECK(short_test.reason.find("within a few steps") != std::string::npos);
}

TEST_CASE("a loss that falls fastest right before its end gets a tenth of the best rate") {
  // Falls in a line by the logarithm, and jumps up at 1e-2.
  std::vector<RatePoint> points;
  for (int i = 0; i < 200; ++i) {
    const double power = -7 + 5.0 * i / 200;
    const double fall = power < -3 ? 0 : (power + 3) * (power + 3);
    points.push_back({std::pow(10, power), 2.3 - fall});
  }
  const RateSuggestion suggestion = suggest_rate(points);
  REQUIRE(suggestion.rate.has_value());
  CHECK(*suggestion.rate == doctest::Approx(1e-3).epsilon(0.1));
  CHECK(suggestion.reason.find("a tenth of that is suggested") != std::string::npos);
}

TEST_CASE("a mean that forgets begins without a bias") {
  for (const double value : smoothed({{1, 5}, {2, 5}, {3, 5}})) CHECK(value == doctest::Approx(5));
  const auto line = smoothed({{1, 0}, {2, 1}});
  CHECK(line[1] == doctest::Approx(0.1 / (1 - 0.9 * 0.9)));
}

TEST_CASE("each optimizer gets the rates, and logs of training alone are due in each step") {
  const auto config = [](const std::string& yaml) {
    return config_of_rates(parse_yaml(yaml, {"a.yaml", 0}), 1e-7, 10, 320);
  };
  const Value one = config("optimizer: Adam\nlog_ops: [validation/log_op, train/a]\n");
  CHECK(flow_yaml(*one.find("optimizer")) ==
        "{class: Adam, lr: {class: exponential, from: 1.0e-07, to: 10.0, steps: 320}}");
  CHECK(flow_yaml(*one.find("log_ops")) == "[train/a]");
  CHECK(one.find("log_freq")->as_int() == 1);
  const Value two = config("optimizers: {g: {class: Adam, lr: 1}, d: {class: SGD, lr: 1}}\n");
  CHECK(two.find("optimizers/g/lr/to") != nullptr);
  CHECK(two.find("optimizers/d/lr/to") != nullptr);
  CHECK(message_of([&] { config("model: LeNet\n"); }) ==
        "stepop tune --lr: the config has neither optimizer nor optimizers");
}

TEST_CASE("a picture is made of what there is, with and without a suggestion") {
  const ScratchFolder folder;
  const auto points = test_of(2, 0.1);
  for (const size_t count : {size_t{1}, size_t{2}, points.size()}) {
    const std::vector<RatePoint> some(points.begin(),
                                      points.begin() + static_cast<std::ptrdiff_t>(count));
    folder.write("a.png", rate_picture(some, suggest_rate(some)));
    CHECK(read_image(folder.path("a.png")).size(1) > 300);
  }
  CHECK_THROWS_AS(rate_picture({}, {}), Error);
}

}  // namespace learning_rates_test
}  // namespace stepop
