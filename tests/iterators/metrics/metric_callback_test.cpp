#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"
#include "tests/python.h"

namespace stepop {
namespace metric_callback_test {

TEST_CASE("a metric over the outputs of an evaluation, in blocks, is scikit-learn's") {
  constexpr int64_t kRows = 30'000;  // several blocks
  at::manual_seed(3);
  const at::Tensor logits = at::randn({kRows, 100});
  const at::Tensor target = at::randint(0, 100, {kRows}, at::kLong);
  const EvalOutputs outputs{.outputs = {{"scores", logits}}, .labels = {{"digit", target}}};
  const auto f1 = look("F1", outputs, "{average: macro, prediction: scores, target: digit}");
  const auto top = look("TopK", outputs, "{k: 7, prediction: scores, target: digit}");
  const auto expected = nlohmann::json::parse(run_python(
      R"(
import h5py, json, sys
from sklearn.metrics import f1_score, top_k_accuracy_score
f = h5py.File(sys.argv[1])
scores, digit = f["outputs/scores"][()], f["labels/digit"][()]
print(json.dumps([f1_score(digit, scores.argmax(1), average="macro"), top_k_accuracy_score(digit, scores, k=7)]))
)",
      {f1->folder.path("outputs.h5")}));
  CHECK(f1->logs.scalars.key_list() == "F1");
  CHECK(f1->value("F1") == doctest::Approx(expected[0].get<double>()).epsilon(1e-6));
  CHECK(top->value("TopK") == doctest::Approx(expected[1].get<double>()).epsilon(1e-6));
  CHECK(look("F1", outputs, "{average: none, prediction: scores, target: digit}")
            ->logs.scalars.contains("99"));
  // As 0.1.0 read it.
  const auto wrapped =
      look("Metric", outputs, "{metric: {class: TopK, k: 7}, prediction: scores, target: digit}");
  CHECK(wrapped->value("TopK") == top->value("TopK"));
}

TEST_CASE("mistakes in the metric of a callback are found before the run") {
  const auto says = [](const std::string& callback) {
    const Config config(
        parse_yaml("eval_hook: {eval_callbacks: {f: {" + callback + "}}}", {"test.yaml", 0}));
    const std::string message = message_of([&] { EvaluationCallbacks(config).declare(); });
    return message == "no error" ? config.unknown_keys() : message;
  };
  CHECK(says("class: F1, average: micro").empty());
  CHECK(says("class: F1, average: mikro") ==
        "test.yaml:1: eval_hook/eval_callbacks/f/average: expected macro, micro or none, found "
        "\"mikro\"");
  CHECK(says("class: F1, avrage: micro").find("f/avrage") != std::string::npos);
  const std::string wrapped = "class: Metric, ";
  CHECK(says(wrapped + "metric: {class: F1, average: micro}").empty());
  CHECK(says(wrapped + "prediction: logits").find("eval_callbacks/f/metric: missing") !=
        std::string::npos);
  CHECK(says(wrapped + "metric: {class: F1, average: mikro}") ==
        "test.yaml:1: eval_hook/eval_callbacks/f/metric/average: expected macro, micro or none, "
        "found \"mikro\"");
}

}  // namespace metric_callback_test
}  // namespace stepop
