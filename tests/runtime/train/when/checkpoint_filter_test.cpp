#include "runtime/train/when/checkpoint_filter.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace checkpoint_filter_test {

CheckpointFilter filter_of(const std::string& text) {
  return CheckpointFilter(Config(parse_yaml("eval_filter: " + text, {"f.yaml", 0})));
}

TEST_CASE("without a filter every checkpoint is taken") {
  const CheckpointFilter none(Config(parse_yaml("{}", {"f.yaml", 0})));
  CHECK(none.takes(0, "model-0"));
  CHECK(none.takes(1'000'000'000'000, "model-1000000000000"));
  CHECK_FALSE(none.has_conditions());
}

TEST_CASE("steps, a span and a pattern each leave some out") {
  const CheckpointFilter steps = filter_of("{steps: [100, 300]}");
  CHECK(steps.takes(100, "model-100"));
  CHECK_FALSE(steps.takes(200, "model-200"));
  const CheckpointFilter span = filter_of("{from: 100, until: 300, match: '00$'}");
  CHECK_FALSE(span.takes(99, "model-00"));
  CHECK(span.takes(100, "model-100"));
  CHECK(span.takes(300, "model-300"));
  CHECK_FALSE(span.takes(301, "model-400"));
  CHECK_FALSE(span.takes(150, "model-150"));
}

TEST_CASE("a condition holds, does not, or waits for its metric") {
  const auto holds = [](const std::string& where, std::optional<double> value) {
    return filter_of("{where: " + where + "}").holds([&](const std::string& metric) {
      CHECK(metric == "validation/eval_op/loss");
      return value;
    });
  };
  CHECK(holds("validation/eval_op/loss < 0.5", 0.4) == true);
  CHECK(holds("validation/eval_op/loss < 0.5", 0.5) == false);
  CHECK(holds("validation/eval_op/loss <= 0.5", 0.5) == true);
  CHECK(holds("validation/eval_op/loss>5e-1", 0.5) == false);
  CHECK(holds("validation/eval_op/loss >= 5e-1", 0.5) == true);
  CHECK(holds("validation/eval_op/loss > -1", 0.5) == true);
  CHECK(holds("validation/eval_op/loss < 1", std::nullopt) == std::nullopt);
  CHECK(holds("['validation/eval_op/loss < 1', 'validation/eval_op/loss > 0.6']", 0.5) == false);
  CHECK(holds("['validation/eval_op/loss < 1', 'validation/eval_op/loss > 0.4']", 0.5) == true);
}

TEST_CASE("mistakes in a filter say where, and what was expected") {
  const auto message = [](const std::string& text) { return message_of([&] { filter_of(text); }); };
  CHECK(message("5") ==
        "f.yaml:1: eval_filter: expected a map of steps, from, until, match and where, such as "
        "{from: 1000}, found 5");
  CHECK(message("{from: 10, until: 5}") ==
        "f.yaml:1: eval_filter/until: expected from, 10, or more, found 5");
  CHECK(message("{steps: []}") ==
        "f.yaml:1: eval_filter/steps: expected one step or more, found none");
  for (const char* where : {"loss", "loss <", "< 5", "loss < many", "loss < .nan", "loss = 5"}) {
    CHECK(
        message(std::string("{where: '") + where + "'}") ==
        std::string("f.yaml:1: eval_filter/where: expected a metric, <, <=, > or >=, and a number, "
                    "such as \"validation/eval_op/loss < 0.5\", found \"") +
            where + "\"");
  }
  CHECK(message("{where: ['a < 1', 'b']}").starts_with("f.yaml:1: eval_filter/where/1: expected"));
  CHECK(message("{match: '('}").starts_with("f.yaml:1: eval_filter/match: "));
}

}  // namespace checkpoint_filter_test
}  // namespace stepop
