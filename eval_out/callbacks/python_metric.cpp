#include "eval_out/callbacks/python_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "eval_out/callbacks/script.h"
#include "runtime/core/programs/python.h"
#include "runtime/data/python/python_object.h"

namespace stepop {
namespace {

constexpr std::array<std::string_view, 4> kTransforms = {"raw", "argmax", "softmax", "sigmoid"};
constexpr int64_t kMostResamples = 100'000;

/// The exit status with a reason, as in stepop/eval/metric.py.
constexpr int kRefused = 65;

/// Puts the package of this version before any that Python would find.
constexpr const char* kStart = R"py(
import json, sys
package = sys.argv.pop(1)
if package:
    sys.path.insert(0, package)
try:
    from stepop.eval.metric import main
except ModuleNotFoundError as error:
    module = error.name.split(".")[0]
    help = f"{sys.executable} -m pip install {module}"
    if module == "stepop":
        help = "that package comes with stepop's wheel"
    print(json.dumps(f"the Python {sys.executable} has no {module}: {help}"))
    sys.exit(65)
main()
)py";

Logs python_metric(const CallbackArguments& arguments) {
  return run_metric(arguments, {.name = fmt::format("{} {}", kPythonMetric, arguments.name),
                                .words = {"-c", kStart, find_python_package(), arguments.name},
                                .refusal = kRefused});
}

STEPOP_REGISTER_CALLBACK(
    PythonMetric, python_metric,
    {"A metric of torchmetrics, of scikit-learn or of your own, in Python.",
     {{"metric", "", "torchmetrics.AUROC, sklearn.metrics.f1_score, my_metrics.py:my_metric"},
      {"kwargs", "{}", "the metric's own arguments"},
      {"prediction", "logits", "the key of the predictions, in the outputs or labels"},
      {"prediction_as", "raw", "raw, argmax, softmax or sigmoid, applied before"},
      {"target", "class", "the key of the truth, in the outputs or labels"},
      {"by", "null", "a key of texts or whole numbers: the metric of each group as well"},
      {"bootstrap", "0", "how many resamples of the examples give a 95 % interval"},
      {"plot", "false", "a picture, by the metric's plot() and matplotlib"},
      {"python", "python3", "the Python, by default that of the tree's .venv, else on the PATH"}}});
STEPOP_CALLBACK_KEYS(PythonMetric, {"prediction", KeyParameter::From::kFile},
                     {"target", KeyParameter::From::kFile}, {"by", KeyParameter::From::kFile});

}  // namespace

void check_python_metric(const Config& config, std::string_view path, const Config& params) {
  read_python_object(params, "metric", "my_metric");
  read_python_kwargs(params);
  params.claim("kwargs");
  for (const char* key : {"prediction", "target", "by"}) {
    if (params.has(key)) params.get<std::string>(key);
  }
  const auto transform = params.get("prediction_as", "raw");
  if (std::ranges::find(kTransforms, transform) == kTransforms.end()) {
    throw params.error(
        "prediction_as",
        fmt::format("expected raw, argmax, softmax or sigmoid, found \"{}\"", transform));
  }
  params.get_between("bootstrap", 0, kMostResamples, 0);
  params.get("plot", false);
  check_python(params.get<std::string>("metric"), config, path, params);
}

}  // namespace stepop
