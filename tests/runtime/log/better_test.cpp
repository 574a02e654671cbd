#include "runtime/log/better.h"

#include <doctest/doctest.h>

#include "runtime/config/yaml_reader.h"

namespace stepop {
namespace better_test {

TEST_CASE("losses and errors are better when lower, scores when higher, others unknown") {
  for (const char* name : {"train/log_op/loss", "validation/eval_op/regression/MAE", "a/b/loss_gan",
                           "validation/eval_op/accuracy/error"}) {
    CAPTURE(name);
    CHECK(better_of(name, nullptr) == Better::kLower);
  }
  for (const char* name : {"validation/eval_op/accuracy/accuracy", "a/b/top-5", "a/b/psnr",
                           "validation/eval_op/report/f1"}) {
    CAPTURE(name);
    CHECK(better_of(name, nullptr) == Better::kHigher);
  }
  for (const char* name : {"train/train_op/lr", "train/log_op/glossary", "a", ""}) {
    CAPTURE(name);
    CHECK(better_of(name, nullptr) == Better::kUnknown);
  }
}

TEST_CASE("the config's word comes before the name's") {
  const Value config = parse_yaml(
      "checkpoints: {metric: a/loss, mode: max}\nstop_when: {metric: b, mode: min}\n", {});
  CHECK(better_of("a/loss", &config) == Better::kHigher);
  CHECK(better_of("b", &config) == Better::kLower);
  CHECK(better_of("c/loss", &config) == Better::kLower);
  const Value broken = parse_yaml("checkpoints: {metric: a/loss, mode: [1]}\nstop_when: 3\n", {});
  CHECK(better_of("a/loss", &broken) == Better::kLower);
}

}  // namespace better_test
}  // namespace stepop
