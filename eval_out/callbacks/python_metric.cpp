#include "eval_out/callbacks/python_metric.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "eval_out/callbacks/script.h"
#include "runtime/core/programs/python.h"
#include "runtime/data/python/python_object.h"

namespace stepop {
namespace {

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

/// What stepop/eval/metric.py reads; here it is checked before a run begins.
struct PythonMetricParams {
  std::string prediction_as = "raw";
  std::optional<std::string> by;
  int64_t bootstrap = 0;
  bool plot = false;
  std::optional<std::string> python;

  void declare(Parameters& p) {
    const Config* config = p.describe_required(
        "metric", "text", "torchmetrics.AUROC, sklearn.metrics.f1_score, my_metrics.py:my_metric");
    if (config != nullptr) read_python_object(*config, "metric", "my_metric");
    config = p.describe({"kwargs", "{}", "the metric's own arguments", false, {.kind = "map"}});
    if (config != nullptr) read_python_kwargs(*config);
    declare_key(p, "prediction", "logits", "the key of the predictions, in the outputs or labels");
    p.add("prediction_as", prediction_as, "raw, argmax, softmax or sigmoid, applied before",
          one_of({"raw", "argmax", "softmax", "sigmoid"}));
    declare_key(p, "target", "class", "the key of the truth, in the outputs or labels");
    p.add("by", by, "a key of texts or whole numbers: the metric of each group as well");
    p.add("bootstrap", bootstrap, "how many resamples of the examples give a 95 % interval",
          at_least(0).at_most(100'000));
    p.add("plot", plot, "a picture, by the metric's plot() and matplotlib");
    p.add("python", python, "the Python; none: that of the tree's .venv, else on the PATH");
  }

  static void declare_key(Parameters& p, const char* name, const char* usual, const char* about) {
    const Config* config = p.describe({name, usual, about, false, {.kind = "text"}});
    if (config != nullptr && config->has(name)) config->get<std::string>(name);
  }
};

Logs python_metric(const CallbackArguments& arguments, const PythonMetricParams& /*params*/) {
  return run_metric(arguments, {.name = fmt::format("{} {}", kPythonMetric, arguments.name),
                                .words = {"-c", kStart, find_python_package(), arguments.name},
                                .refusal = kRefused});
}

STEPOP_REGISTER_CALLBACK(PythonMetric, python_metric,
                         {"A metric of torchmetrics, of scikit-learn or of your own, in Python."});
STEPOP_CALLBACK_KEYS(PythonMetric, {"prediction", KeyParameter::From::kFile},
                     {"target", KeyParameter::From::kFile}, {"by", KeyParameter::From::kFile});

}  // namespace

void check_python_metric(const Config& config, std::string_view path, const Config& params) {
  read_parameters<PythonMetricParams>(params);
  params.claim("kwargs");
  check_python(params.get<std::string>("metric"), config, path, params);
}

}  // namespace stepop
