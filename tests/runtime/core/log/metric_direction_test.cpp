#include "runtime/core/log/metric_direction.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace metric_direction_test {

TEST_CASE("losses and errors are better when lower, scores when higher, others unknown") {
  for (const char* name : {"train/log_op/loss", "validation/eval_op/regression/MAE", "a/b/loss_gan",
                           "validation/eval_op/accuracy/error"}) {
    CAPTURE(name);
    CHECK(metric_direction(name, nullptr) == MetricDirection::kLower);
  }
  for (const char* name : {"validation/eval_op/accuracy/accuracy", "a/b/top-5", "a/b/psnr",
                           "validation/eval_op/report/f1", "train/train_op/return"}) {
    CAPTURE(name);
    CHECK(metric_direction(name, nullptr) == MetricDirection::kHigher);
  }
  // scikit-learn's scorers, of which more is better.
  for (const char* name : {"a/neg_mean_squared_error", "a/neg_log_loss", "a/log_likelihood",
                           "a/-loss", "a/negative/accuracy"}) {
    CAPTURE(name);
    CHECK(metric_direction(name, nullptr) == MetricDirection::kHigher);
  }
  CHECK(metric_direction("a/negative_log_likelihood", nullptr) == MetricDirection::kLower);
  CHECK(metric_direction("a/negative_loss", nullptr) == MetricDirection::kLower);
  for (const char* name : {"train/train_op/lr", "train/log_op/glossary", "a", "",
                           "validation/eval_op/perplexity/tokens", "a/loss/"}) {
    CAPTURE(name);
    CHECK(metric_direction(name, nullptr) == MetricDirection::kUnknown);
  }
}

TEST_CASE("the config's word comes before the name's") {
  const Value config = parse_yaml(
      "checkpoints: {metric: a/loss, mode: max}\nstop_when: {metric: b, mode: min}\n", {});
  CHECK(metric_direction("a/loss", &config) == MetricDirection::kHigher);
  CHECK(metric_direction("b", &config) == MetricDirection::kLower);
  CHECK(metric_direction("c/loss", &config) == MetricDirection::kLower);
  const Value broken = parse_yaml("checkpoints: {metric: a/loss, mode: [1]}\nstop_when: 3\n", {});
  CHECK(metric_direction("a/loss", &broken) == MetricDirection::kLower);
}

}  // namespace metric_direction_test
}  // namespace stepop
