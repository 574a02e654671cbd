#include "eval_out/callbacks/python_metric.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"

namespace stepop {
namespace python_metric_test {

constexpr const char* kPython = STEPOP_SOURCE_DIR "/.venv/bin/python3";
constexpr int64_t kRows = 300;

/// An evaluation with ties among the scores, a class that is never true, and NaN in `broken`.
class Measured {
 public:
  Measured() {
    at::manual_seed(5);
    const at::Tensor target = at::randint(0, 4, {kRows}, at::kLong);
    target.masked_fill_(target.eq(2), 0);
    at::Tensor logits = at::randn({kRows, 5}).mul(2).round().div(2);
    logits.scatter_add_(1, target.unsqueeze(1), at::ones({kRows, 1}));
    at::Tensor broken = logits.clone();
    broken[7][2] = NAN;
    std::vector<std::string> sites;
    std::vector<int64_t> index(kRows);
    std::iota(index.begin(), index.end(), 0);
    for (int64_t i = 0; i < kRows; ++i) sites.push_back(i % 7 < 4 ? "north" : "a/b c");
    EvalWriter writer(folder_.path("outputs.h5"), kRows);
    writer.write(
        {.outputs = {{"logits", logits},
                     {"broken", broken},
                     {"score", at::rand({kRows}).mul(10).round().div(10)},
                     {"site", sites}},
         .labels = {{"class", target},
                    {"binary", at::rand({kRows}).lt(0.3)},
                    {"one", at::ones({kRows}, at::kLong)},
                    {"some", target.masked_fill(at::arange(kRows).remainder(3).eq(0), -100)},
                    {"none", at::full({kRows}, -100, at::kLong)},
                    {"many", at::arange(kRows).remainder(77)},
                    {"loss", at::rand({kRows})}}},
        index);
    writer.finish();
  }

  /// The results of one callback `m` with these parameters, and of another one after it.
  CallbackResults run(const std::string& params) const {
    const Config config(
        parse_yaml("eval_hook:\n  eval_callbacks:\n    m: {class: PythonMetric, " + params +
                       "}\n    after: {class: regression, prediction: score, target: loss}",
                   {folder_.path("test.yaml"), 0}));
    const EvaluationCallbacks callbacks(config);
    callbacks.declare();
    CHECK(config.unknown_keys() == "");
    CallbackResults results =
        callbacks.call(folder_.path(), TensorData(), EvalFile(folder_.path("outputs.h5")));
    CHECK(results.logs.contains("after"));  // whatever the metric did
    return results;
  }

  OrderedMap<double> scalars(const std::string& params) const {
    const CallbackResults results = run(params);
    if (!results.failures.empty()) throw std::runtime_error(results.failures.begin()->second);
    OrderedMap<double> found;
    for (const auto& [name, value] : results.logs.at("m").scalars) {
      found.set(name, value.read(name));
    }
    return found;
  }

  /// The message of the failure, with PYTHON for the interpreter.
  std::string failure(const std::string& params) const {
    const CallbackResults results = run(params);
    std::string message = results.failures.contains("m") ? results.failures.at("m") : "";
    for (size_t at = 0; (at = message.find(kPython)) != std::string::npos;) {
      message.replace(at, std::string(kPython).size(), "PYTHON");
    }
    return message;
  }

  struct Check {
    std::string params;
    std::vector<std::string> names;
    std::string expression;
  };

  /// What the Python code of each makes of the arrays `logits`, `target`, `f`, `m`
  /// (sklearn.metrics), `t` (torchmetrics) and `np`, called directly: a JSON list of lists.
  nlohmann::json direct(const std::vector<Check>& checks) const {
    const char* code = R"(
import json, sys, warnings
import h5py, numpy as np
from sklearn import metrics as m
from scipy.special import expit, softmax
warnings.simplefilter("ignore")
f = {k: v[()] for g in h5py.File(sys.argv[1]).values() if isinstance(g, h5py.Group) for k, v in g.items()}
logits, target, site = f["logits"], f["class"], f["site"]
def low_high(metric, n):
    random = np.random.default_rng(0)
    found = [metric(random.integers(0, len(target), len(target))) for _ in range(n)]
    return list(np.percentile(found, [2.5, 97.5]))
)";
    std::string script = code;
    if (checks[0].params.find("torchmetrics") != std::string::npos) {
      script += "import torchmetrics as t\nfrom torch import tensor as z\n";
    }
    script += "all = []\n";
    for (const Check& check : checks) {
      script += "found = [float(x) for x in " + check.expression +
                "]\nall.append([None if x != x else x for x in found])\n";
    }
    return nlohmann::json::parse(
        run_python(script + "print(json.dumps(all))", {folder_.path("outputs.h5")}));
  }

  void check(const std::vector<Check>& checks) const {
    const nlohmann::json all = direct(checks);
    REQUIRE(all.size() == checks.size());
    for (size_t each = 0; each < checks.size(); ++each) {
      const auto& [params, names, expression] = checks[each];
      CAPTURE(params);
      const OrderedMap<double> found = scalars(params);
      const nlohmann::json& expected = all[each];
      REQUIRE(found.size() == names.size());
      REQUIRE(expected.size() == names.size());
      for (size_t i = 0; i < names.size(); ++i) {
        CAPTURE(names[i]);
        if (expected[i].is_null()) {
          CHECK(std::isnan(found.at(names[i])));
        } else {
          CHECK(found.at(names[i]) == doctest::Approx(expected[i].get<double>()).epsilon(1e-6));
        }
      }
    }
  }

  const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
};

TEST_CASE("a class of torchmetrics gives what it gives when it is called directly") {
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(fmt::format("AveragePrecision/{}", i));
  Measured().check(
      {{"metric: torchmetrics.AUROC, kwargs: {task: multiclass, num_classes: 5}, by: site",
        {"AUROC", "AUROC/site/north", "AUROC/site/a_b_c"},
        "[t.AUROC(task='multiclass', num_classes=5)(z(logits[w]), z(target[w])) for w in "
        "(site == site, site == b'north', site == b'a/b c')]"},
       {"metric: torchmetrics.AveragePrecision, kwargs: {task: multiclass, num_classes: 5, "
        "average: "
        "none}, prediction: broken",
        names,
        "t.AveragePrecision(task='multiclass', num_classes=5, average='none')(z(f['broken']), "
        "z(target))"}});
}

TEST_CASE("a function of scikit-learn gives what it gives when it is called directly") {
  Measured().check(
      {{"metric: sklearn.metrics.f1_score, kwargs: {average: macro}, prediction_as: argmax, "
        "by: site, bootstrap: 40",
        {"f1_score", "f1_score/site/north", "f1_score/site/a_b_c", "f1_score_low", "f1_score_high"},
        "[m.f1_score(target[w], logits.argmax(1)[w], average='macro') for w in "
        "(site == site, site == b'north', site == b'a/b c')] + low_high(lambda r: "
        "m.f1_score(target[r], logits.argmax(1)[r], average='macro'), 40)"},
       {"metric: sklearn.metrics.f1_score, kwargs: {average: null, labels: [0, 1, 2]}, "
        "prediction_as: argmax",
        {"f1_score/0", "f1_score/1", "f1_score/2"},
        "m.f1_score(target, logits.argmax(1), average=None, labels=[0, 1, 2])"},
       {"metric: sklearn.metrics.brier_score_loss, prediction: score, prediction_as: sigmoid, "
        "target: binary",
        {"brier_score_loss"},
        "[m.brier_score_loss(f['binary'], expit(f['score'].astype(float)))]"},
       {"metric: sklearn.metrics.log_loss, prediction_as: softmax, "
        "kwargs: {labels: [0, 1, 2, 3, 4]}",
        {"log_loss"},
        "[m.log_loss(target, softmax(logits.astype(float), 1), labels=range(5))]"}});
}

TEST_CASE("rows whose class is -100 do not count") {
  Measured data;
  data.check(
      {{"metric: sklearn.metrics.f1_score, kwargs: {average: macro}, prediction_as: argmax, "
        "target: some, by: site, bootstrap: 40",
        {"f1_score", "f1_score/site/north", "f1_score/site/a_b_c", "f1_score_low", "f1_score_high"},
        "(lambda c, y, s: [m.f1_score(c[w], y[w], average='macro') for w in (s == s, s == "
        "b'north', s == b'a/b c')] + [np.percentile([m.f1_score(c[r], y[r], "
        "average='macro') for random in [np.random.default_rng(0)] for r in "
        "[random.integers(0, len(c), len(c)) for _ in range(40)]], q) for q in (2.5, 97.5)])"
        "(f['some'][f['some'] != -100], logits.argmax(1)[f['some'] != -100], "
        "site[f['some'] != -100])"}});
  data.check(
      {{"metric: torchmetrics.Accuracy, kwargs: {task: multiclass, num_classes: 5, "
        "average: micro, ignore_index: -100}, target: some",
        {"Accuracy"},
        "[(logits.argmax(1) == target)[f['some'] != -100].mean()]"}});
  CHECK(data.failure("metric: sklearn.metrics.f1_score, prediction_as: argmax, target: none") ==
        "PythonMetric m: nothing counts: none is -100 in every row");
}

TEST_CASE("resamples have a fixed seed") {
  const Measured data;
  const char* params =
      "metric: sklearn.metrics.roc_auc_score, prediction: score, target: binary, bootstrap: 30";
  const auto first = data.scalars(params), second = data.scalars(params);
  for (const auto& [name, value] : first) CHECK(second.at(name) == value);
  CHECK(first.at("roc_auc_score_low") < first.at("roc_auc_score"));
  CHECK(first.at("roc_auc_score_high") > first.at("roc_auc_score"));
}

TEST_CASE("a metric without a result, in rows of one class, is NaN") {
  const auto found = Measured().scalars(
      "metric: sklearn.metrics.roc_auc_score, prediction: score, target: binary, by: binary, "
      "bootstrap: 2");
  CHECK(std::isnan(found.at("roc_auc_score/binary/False")));
  CHECK(std::isnan(found.at("roc_auc_score/binary/True")));
  CHECK_FALSE(std::isnan(found.at("roc_auc_score_low")));
}

TEST_CASE("a matrix, a curve and a text are files of the callback") {
  const Measured data;
  CHECK(data.scalars("metric: sklearn.metrics.confusion_matrix, prediction_as: argmax").empty());
  CHECK(
      data.scalars("metric: sklearn.metrics.roc_curve, prediction: score, target: binary").empty());
  CHECK(
      data.scalars("metric: sklearn.metrics.classification_report, prediction_as: argmax").empty());
  const auto file = [&](const char* name) { return data.folder().path(fmt::format("m/{}", name)); };
  CHECK(std::filesystem::exists(file("classification_report.txt")));
  run_python(
      R"(
import sys, h5py, numpy as np
from sklearn import metrics as m
f = h5py.File(sys.argv[1])
matrix = m.confusion_matrix(f["labels/class"][()], f["outputs/logits"][()].argmax(1))
assert np.array_equal(np.loadtxt(sys.argv[2], delimiter=","), matrix)
curve, kept = m.roc_curve(f["labels/binary"][()], f["outputs/score"][()]), np.load(sys.argv[3])
assert all(np.array_equal(kept[str(i)], curve[i]) for i in range(3))
)",
      {data.folder().path("outputs.h5"), file("confusion_matrix.csv"), file("roc_curve.npz")});
}

TEST_CASE("a metric of your own is named by its file or its module") {
  const Measured data;
  data.folder().write("my_metrics.py",
                      "import os\n"
                      "def bias(prediction, target): return (prediction - target).mean()\n"
                      "def fails(target, prediction): raise KeyError('site')\n"
                      "def dies(target, prediction): os.kill(os.getpid(), 9)\n"
                      "class Rows:\n"
                      "    def __init__(self, factor): self.factor, self.rows = factor, 0\n"
                      "    def update(self, prediction, target): self.rows += len(target)\n"
                      "    def compute(self): return {'rows': self.factor * self.rows}\n");
  data.check({{"metric: my_metrics.py:bias, prediction: score, target: loss",
               {"bias"},
               "[(f['score'] - f['loss']).mean()]"}});
  CHECK(data.scalars("metric: my_metrics.py:Rows, kwargs: {factor: 2}").at("Rows/rows") ==
        2 * kRows);
  const std::string file = data.folder().path("my_metrics.py");
  const std::string failure = data.failure("metric: my_metrics.py:fails");
  CHECK(failure.starts_with("PythonMetric m: " + file +
                            ":fails of logits (float32 [300, 5]) and class (int64 [300]): "
                            "KeyError: 'site'\nTraceback "));
  CHECK(failure.find("my_metrics.py\", line 3, in fails") != std::string::npos);
  CHECK(data.failure("metric: my_metrics.py:dies") ==
        "PythonMetric m was ended by signal 9 and wrote nothing to its standard error");
  CHECK(data.failure("metric: my_metrics.py:bia") ==
        "PythonMetric m: metric: " + file + " has no bia; did you mean bias?");
}

TEST_CASE("a metric that ends Python has no number, whatever its exit status says") {
  const Measured data;
  data.folder().write("ends.py",
                      "import os, sys\n"
                      "def quits(target, prediction): os._exit(0)\n"
                      "def exits(target, prediction): sys.exit()\n"
                      "def prints(target, prediction):\n"
                      "    print('half', flush=True)\n"
                      "    os._exit(0)\n"
                      "class Mute(Exception):\n"
                      "    def __str__(self): raise TypeError\n"
                      "def mute(target, prediction): raise Mute\n"
                      "def long(target, prediction): raise ValueError('y' * 50_000_000)\n");
  for (const std::string name : {"quits", "exits"}) {
    CHECK(data.failure("metric: ends.py:" + name) ==
          "PythonMetric m: the metric ended Python with exit status 0 before it gave a number: it "
          "must return one, not call sys.exit or os._exit");
  }
  CHECK(data.failure("metric: ends.py:prints").find("found: half") != std::string::npos);
  CHECK(data.failure("metric: ends.py:mute").find("Mute") != std::string::npos);
  const std::string message = data.failure("metric: ends.py:long");
  CHECK(message.find("ValueError: yyy") != std::string::npos);
  CHECK(message.size() < 20'000);
}

TEST_CASE("what a metric has started ends with it") {
  const Measured data;
  data.folder().write("starts.py",
                      "import os, time\n"
                      "def metric(target, prediction):\n"
                      "    child = os.fork()\n"
                      "    if child == 0:\n"
                      "        time.sleep(100)\n"
                      "        os._exit(0)\n"
                      "    return child\n");
  const auto child = static_cast<pid_t>(data.scalars("metric: starts.py:metric").at("metric"));
  bool is_over = false;
  for (int i = 0; i < 500 && !is_over; ++i) {
    // Whoever adopted it may not have noted its end yet.
    const auto state = try_read_file(fmt::format("/proc/{}/stat", child));
    is_over = !state || state->find(") Z ") != std::string::npos;
    if (!is_over) ::usleep(10'000);
  }
  CHECK(is_over);
  if (!is_over) ::kill(child, SIGKILL);
}

TEST_CASE("a metric that is not there, or does not fit, is an error that says what helps") {
  const Measured data;
  data.folder().write("my.py", "def metric(target, prediction): return 0");
  const auto is = [&](const std::string& params, const std::string& message) {
    CHECK(data.failure(params) == "PythonMetric m: " + message);
  };
  is("metric: sklearn.metrics.f1_scor",
     "metric: sklearn.metrics has no f1_scor; did you mean f1_score or r2_score or fbeta_score?");
  is("metric: sklern.metrics.f1_score",
     "metric: the Python PYTHON has no module sklern; did you mean \"sklearn\"?");
  is("metric: sklearn.metrics",
     "metric: sklearn.metrics is a module, not a function f(target, prediction) or a class with "
     "update() and compute()");
  is("metric: AUROC", "metric: expected a name such as torchmetrics.AUROC, found \"AUROC\"");
  is("metric: sklearn.metrics.f1_score, kwargs: {averag: macro}",
     "sklearn.metrics.f1_score of logits (float32 [300, 5]) and class (int64 [300]): TypeError: "
     "got "
     "an unexpected keyword argument 'averag'; did you mean \"average\"?");
  is("metric: sklearn.metrics.f1_score, kwargs: {average: macro}",
     "sklearn.metrics.f1_score of logits (float32 [300, 5]) and class (int64 [300]): ValueError: "
     "Classification metrics can't handle a mix of multiclass and continuous-multioutput targets; "
     "prediction_as: argmax makes classes of scores, softmax makes probabilities");
  is("metric: my.py:metric, prediction: logit",
     "prediction: no \"logit\"; did you mean \"logits\"? the evaluation has outputs/broken, "
     "outputs/logits, outputs/score, outputs/site, labels/binary, labels/class, labels/loss, "
     "labels/many, labels/none, labels/one, labels/some");
  is("metric: my.py:metric, prediction: broken, prediction_as: argmax",
     "prediction_as: argmax: row 7 of broken has a NaN");
  is("metric: my.py:metric, prediction: score, prediction_as: argmax",
     "prediction_as: argmax takes scores [rows, classes], and score is float32 [rows]");
  is("metric: my.py:metric, by: many", "by: many has 77 values; there are at most 50 groups");
  is("metric: my.py:metric, by: loss",
     "by: loss is float32 [300], not a text or a whole number for each row");
  is("metric: sklearn.metrics.f1_score, plot: true",
     "plot: sklearn.metrics.f1_score has no plot(); the classes of torchmetrics have");
  const std::string failure =
      data.failure("metric: torchmetrics.AUROC, kwargs: {task: multiclass, num_classe: 5}");
  CHECK(
      failure.starts_with("PythonMetric m: torchmetrics.AUROC with kwargs {\"task\": "
                          "\"multiclass\", \"num_classe\": 5}: ValueError: "));
  CHECK(failure.ends_with("; did you mean \"num_classes\"?"));
}

TEST_CASE("a package that Python does not have is named with the line that installs it") {
  const Measured data;
  const auto without = [&](const char* module, const char* metric) {
    data.folder().write("sitecustomize.py",
                        fmt::format("import sys\nsys.modules['{}'] = None\n", module));
    ::setenv("PYTHONPATH", data.folder().path().c_str(), 1);
    const std::string failure = data.failure(fmt::format("metric: {}", metric));
    ::unsetenv("PYTHONPATH");
    return failure;
  };
  CHECK(
      without("torchmetrics", "torchmetrics.AUROC") ==
      "PythonMetric m: the Python PYTHON has no torchmetrics: PYTHON -m pip install torchmetrics");
  CHECK(
      without("sklearn", "sklearn.metrics.f1_score") ==
      "PythonMetric m: the Python PYTHON has no scikit-learn: PYTHON -m pip install scikit-learn");
  CHECK(without("h5py", "sklearn.metrics.f1_score") ==
        "PythonMetric m: the Python PYTHON has no h5py: PYTHON -m pip install h5py");
}

TEST_CASE("parameters that no metric takes are found before the run") {
  const Measured data;
  const std::string place = data.folder().path("test.yaml") + ":3: eval_hook/eval_callbacks/m";
  const auto message = [&](const std::string& params) {
    return message_of([&] { data.run(params); });
  };
  CHECK(message("target: class").starts_with(place + "/metric: missing"));
  CHECK(message("metric: a.b, prediction_as: max") ==
        place + "/prediction_as: expected raw, argmax, softmax or sigmoid, found \"max\"");
  CHECK(message("metric: a.b, kwargs: [1]").starts_with(place + "/kwargs: expected a map"));
  CHECK(message("metric: a.b, bootstrap: -1").starts_with(place + "/bootstrap: "));
  CHECK(message("metric: none.py:f").starts_with(place + "/metric: no such file: "));
  CHECK(message("metric: a.b, python: no-python") ==
        place +
            ": no Python to run a.b with: no-python: not found; give one by \"python\" or by "
            "the environment's STEPOP_PYTHON");
}

}  // namespace python_metric_test
}  // namespace stepop
