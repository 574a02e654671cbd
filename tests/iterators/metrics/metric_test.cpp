// Metrics against torchmetrics and scikit-learn, over the same batches.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "iterators/metrics/metric.h"
#include "runtime/core/formats/safetensors.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace metric_test {

constexpr int64_t kRows = 300;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Scores with ties; the class 2 is never true, the class 5 neither true nor predicted; and targets
/// that are left out.
State make_data() {
  at::manual_seed(7);
  at::Tensor target = at::randint(0, 5, {kRows}, at::kLong);
  target.masked_fill_(target.eq(2), 0);
  at::Tensor logits = at::randn({kRows, 6}).mul(2).round().div(2);
  logits.scatter_add_(1, target.unsqueeze(1), at::ones({kRows, 1}));
  logits.select(1, 5).fill_(-30);
  target.masked_fill_(at::rand({kRows}).lt(0.1), -100);
  at::Tensor mask = at::randint(0, 3, {kRows, 3, 2}, at::kLong);
  mask.masked_fill_(at::rand({kRows, 3, 2}).lt(0.2), -100);
  at::Tensor tokens = at::randint(0, 9, {kRows, 7}, at::kLong);
  tokens.masked_fill_(at::rand({kRows, 7}).lt(0.2), -100);
  const at::Tensor truth = at::randn({kRows, 2}, at::kDouble) + 1e7;
  return {{"logits", logits},
          {"distinct", at::randn({kRows, 6})},
          {"class", target},
          {"said", logits.argmax(1)},
          {"pixels", at::randn({kRows, 4, 3, 2})},
          {"mask", mask},
          {"score", at::randn({kRows}).mul(4).round().div(4)},
          {"share", at::rand({kRows}).mul(20).round().div(20)},
          {"binary", at::rand({kRows}).lt(0.3).to(at::kLong)},
          {"likely", logits.softmax(1)},
          {"tokens", tokens},
          {"next", at::randn({kRows, 7, 9})},
          {"truth", truth},
          {"guess", truth + at::randn({kRows, 2}, at::kDouble)}};
}

std::unique_ptr<Metric> build(const std::string& metric) {
  return metric_classes().build(test_config("metric: " + metric), "metric");
}

/// The values of a metric, in batches of `batch` rows.
std::vector<double> values_of(const std::string& metric, const at::Tensor& prediction,
                              const at::Tensor& target, int64_t batch = 64) {
  const auto made = build(metric);
  for (int64_t first = 0; first < target.size(0); first += batch) {
    const int64_t last = std::min(first + batch, target.size(0));
    made->update(prediction.slice(0, first, last), target.slice(0, first, last));
  }
  std::vector<double> values;
  for (const auto& [name, value] : made->compute()) values.push_back(value.read(name));
  return values;
}

double value_of(const std::string& metric, const at::Tensor& prediction, const at::Tensor& target) {
  return values_of(metric, prediction, target).at(0);
}

struct Case {
  const char* metric;
  const char* prediction;
  const char* target;
  const char* python;
};

constexpr Case kCases[] = {
    {"{class: TopK, k: 1}", "logits", "class",
     "t.Accuracy(task='multiclass', num_classes=6, average='micro', ignore_index=-100)"},
    {"{class: TopK, k: 3}", "distinct", "class",
     "t.Accuracy(task='multiclass', num_classes=6, average='micro', top_k=3, ignore_index=-100)"},
    {"F1", "logits", "class",
     "t.F1Score(task='multiclass', num_classes=6, average='macro', ignore_index=-100)"},
    {"{class: F1, classes: 6}", "said", "class",
     "t.F1Score(task='multiclass', num_classes=6, average='macro', ignore_index=-100)"},
    {"F1", "said", "class",
     "t.F1Score(task='multiclass', num_classes=6, average='macro', ignore_index=-100)"},
    {"MeanIoU", "said", "class",
     "t.JaccardIndex(task='multiclass', num_classes=6, ignore_index=-100)"},
    {"{class: F1, average: micro}", "logits", "class",
     "t.F1Score(task='multiclass', num_classes=6, average='micro', ignore_index=-100)"},
    {"{class: F1, average: none}", "logits", "class",
     "t.F1Score(task='multiclass', num_classes=6, average='none', ignore_index=-100)"},
    {"F1", "pixels", "mask",
     "t.F1Score(task='multiclass', num_classes=4, average='macro', ignore_index=-100)"},
    {"MeanIoU", "pixels", "mask",
     "t.JaccardIndex(task='multiclass', num_classes=4, ignore_index=-100)"},
    {"MeanIoU", "logits", "class",
     "t.JaccardIndex(task='multiclass', num_classes=6, ignore_index=-100)"},
    {"{class: MeanIoU, average: none}", "pixels", "mask",
     "t.JaccardIndex(task='multiclass', num_classes=4, average='none', ignore_index=-100)"},
    {"AUROC", "logits", "class",
     "t.AUROC(task='multiclass', num_classes=6, thresholds=200, ignore_index=-100)"},
    {"{class: AUROC, average: none, thresholds: 17, from: probabilities}", "likely", "class",
     "t.AUROC(task='multiclass', num_classes=6, thresholds=17, average='none', ignore_index=-100)"},
    {"AUROC", "pixels", "mask",
     "t.AUROC(task='multiclass', num_classes=4, thresholds=200, ignore_index=-100)"},
    {"AUROC", "score", "binary", "t.AUROC(task='binary', thresholds=200)"},
    {"{class: AUROC, from: probabilities}", "share", "binary",
     "t.AUROC(task='binary', thresholds=200)"},
    {"Perplexity", "next", "tokens", "t.text.Perplexity(ignore_index=-100)"},
    {"R2", "guess", "truth", "R2()"},
};

TEST_CASE("metrics over batches are torchmetrics' and scikit-learn's") {
  const ScratchFolder folder;
  const State data = make_data();
  save_safetensors(folder.path("data.safetensors"), data);
  std::string cases;
  for (const Case& each : kCases) {
    cases += fmt::format("  ({}, '{}', '{}'),\n", each.python, each.prediction, each.target);
  }
  const auto expected =
      nlohmann::json::parse(run_python(
          R"py(
import json, sys, warnings
warnings.simplefilter("ignore")
import torchmetrics as t, torchmetrics.text
from safetensors.torch import load_file
from sklearn.metrics import r2_score
class R2:
    def __call__(self, prediction, target): return r2_score(target.flatten(), prediction.flatten())
data = load_file(sys.argv[1])
found = []
for metric, prediction, target in [
)py" + cases + R"py(]:
    value = metric(data[prediction], data[target])
    found.append(value.tolist() if hasattr(value, "tolist") else value)
print(json.dumps([x if isinstance(x, list) else [x] for x in found]))
)py",
          {folder.path("data.safetensors")}));
  for (size_t i = 0; i < std::size(kCases); ++i) {
    const Case& each = kCases[i];
    CAPTURE(each.metric);
    CAPTURE(each.prediction);
    const auto values = values_of(each.metric, data.at(each.prediction), data.at(each.target));
    REQUIRE(values.size() == expected[i].size());
    for (size_t k = 0; k < values.size(); ++k) {
      CHECK(std::abs(values[k] - expected[i][k].get<double>()) < 1e-6 * std::max(1.0, values[k]));
    }
  }
  const at::Tensor by_token = data.at("next").transpose(1, 2);
  CHECK(value_of("{class: Perplexity, dim: 1}", by_token, data.at("tokens")) ==
        doctest::Approx(value_of("Perplexity", data.at("next"), data.at("tokens"))));
}

TEST_CASE("numbers that are no probabilities are refused where AUROC is to take probabilities") {
  const at::Tensor scores = at::tensor({0.5, 1.5, -2., 1.});
  const at::Tensor target = at::tensor({0, 1, 0, 1});
  CHECK(message_of([&] { value_of("{class: AUROC, from: probabilities}", scores, target); }) ==
        "AUROC: 2 of the predictions are not in [0, 1], as probabilities are; from: logits "
        "takes what a sigmoid or a softmax makes probabilities of");
  CHECK(value_of("{class: AUROC, from: probabilities}", scores.clamp(0, 1), target) == 1);
}

TEST_CASE("predicted classes are counted as they occur, in the first batch or in a later one") {
  const auto metric = build("{class: F1, average: none}");
  metric->update(at::tensor({0, 1}), at::tensor({0, -100}));
  metric->update(at::tensor({3, 1}), at::tensor({3, 0}));
  metric->update(at::tensor({0}), at::tensor({0}));
  std::string said;
  for (const auto& [name, value] : metric->compute()) {
    said += fmt::format("{}: {:.3f} ", name, value.read(name));
  }
  CHECK(said == "0: 0.800 1: 0.000 2: 0.000 3: 1.000 ");  // 2 x 2 / (2 + 3), 2 x 1 / (1 + 1)
}

TEST_CASE("of equal logits the first counts as the larger one") {
  const at::Tensor logits = at::tensor({1., 1., 0., 1., 1., 0.}).view({2, 3});
  const at::Tensor target = at::tensor({0, 1});
  CHECK(value_of("{class: TopK, k: 1}", logits, target) == 0.5);
  CHECK(value_of("{class: TopK, k: 2}", logits, target) == 1);
}

TEST_CASE("a NaN among the predictions makes a metric NaN, unless its target is left out") {
  for (const char* metric : {"{class: TopK, k: 2}", "F1", "{class: F1, average: micro}", "MeanIoU",
                             "AUROC", "Perplexity"}) {
    CAPTURE(metric);
    at::Tensor logits = at::randn({6, 3});
    at::Tensor target = at::tensor({0, 1, 2, 0, 1, 2});
    CHECK(std::isfinite(value_of(metric, logits, target)));
    logits[4][0] = kNan;
    CHECK(std::isnan(value_of(metric, logits, target)));
    target[4] = -100;
    CHECK(std::isfinite(value_of(metric, logits, target)));
    CHECK(std::isnan(value_of(metric, logits, at::full({6}, -100, at::kLong))));
  }
  const at::Tensor numbers = at::tensor({1., 2., kNan});
  CHECK(std::isnan(value_of("R2", numbers, at::tensor({1., 2., 3.}))));
  CHECK(std::isnan(value_of("R2", at::tensor({1., 2., 3.}), numbers)));
}

TEST_CASE(
    "R2 of a constant target is 1 if every prediction is exact, else 0; one number has none") {
  const at::Tensor constant = at::full({70}, 0.1);
  CHECK(value_of("R2", constant, constant) == 1);
  CHECK(value_of("R2", constant + 1, constant) == 0);
  CHECK(std::isnan(value_of("R2", at::tensor({1.}), at::tensor({1.}))));
}

/// The values of two processes, whose sums are added.
double together(const std::string& metric, const std::vector<at::Tensor>& predictions,
                const std::vector<at::Tensor>& targets) {
  std::vector<std::unique_ptr<Metric>> processes;
  at::Tensor largest;
  for (size_t i = 0; i < predictions.size(); ++i) {
    processes.push_back(build(metric));
    processes[i]->update(predictions[i], targets[i]);
    // What this process would send.
    const auto copy = build(metric);
    copy->sums() = processes[i]->sums();
    copy->align([&](const at::Tensor& own) {
      largest = largest.defined() ? at::max(largest, own) : own.clone();
    });
  }
  for (const auto& process : processes) {
    process->align([&](const at::Tensor& own) { own.copy_(largest); });
  }
  State& all = processes[0]->sums();
  for (size_t i = 1; i < processes.size(); ++i) {
    REQUIRE(processes[i]->sums().size() == all.size());
    for (auto& [name, sum] : all) sum = sum + processes[i]->sums().at(name);
  }
  return processes[0]->compute().begin()->second.read("value");
}

TEST_CASE("the sums of several processes, one of them without examples, give the value of one") {
  const State data = make_data();
  for (const Case& each : kCases) {
    CAPTURE(each.metric);
    const at::Tensor& prediction = data.at(each.prediction);
    const at::Tensor& target = data.at(each.target);
    const auto parts = [](const at::Tensor& all) -> std::vector<at::Tensor> {
      return {all.slice(0, 0, 120), all.slice(0, 120), all.slice(0, 0, 0)};
    };
    CHECK(together(each.metric, parts(prediction), parts(target)) ==
          doctest::Approx(value_of(each.metric, prediction, target)).epsilon(1e-9));
  }
}

TEST_CASE("what does not fit a metric is an error that says what is expected") {
  const at::Tensor logits = at::zeros({2, 3});
  const at::Tensor target = at::tensor({0, 1}, at::kLong);
  const auto says = [](const std::string& metric, const at::Tensor& prediction,
                       const at::Tensor& truth) {
    return message_of([&] { values_of(metric, prediction, truth); });
  };
  CHECK(
      says("F1", logits, target.unsqueeze(1)) ==
      "the prediction is float32 [2, 3] and the target int64 [2, 1]; expected logits [B, C, ...], "
      "or predicted classes [B, ...], and classes [B, ...]");
  CHECK(says("TopK", target, target) ==
        "the prediction is int64 [2] and the target int64 [2]; expected logits [B, C, ...] and "
        "classes [B, ...]");
  CHECK(says("F1", logits, at::tensor({0, 3}, at::kLong)) ==
        "the target has the class 3; there are 3 classes, 0 to 2; -100 leaves out");
  CHECK(says("{class: F1, classes: 2}", at::tensor({0, 2}, at::kLong), target) ==
        "the prediction has the class 2; there are 2 classes, 0 to 1; -100 leaves out");
  CHECK(says("TopK", logits, target) == "k is 5, and there are 3 classes");
  CHECK(says("{class: AUROC, from: scores}", logits, target) ==
        "test.yaml:1: metric/from: expected logits or probabilities, found \"scores\"");
  CHECK(says("R2", logits, target) ==
        "the prediction is float32 [2, 3] and the target int64 [2]; expected equal shapes");
  CHECK(says("{class: F1, average: weighted}", logits, target) ==
        "test.yaml:1: metric/average: expected macro, micro or none, found \"weighted\"");
  CHECK(says("F2", logits, target).find("unknown metric \"F2\"") != std::string::npos);
}

}  // namespace metric_test
}  // namespace stepop
