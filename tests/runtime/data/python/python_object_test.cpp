// Objects of Python in a config that is written elsewhere, as by a sweep.

#include <doctest/doctest.h>

#include <string>

#include "runtime/core/components/registry.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace python_object_test {

TEST_CASE("an object of a Python file is named by its absolute file, a module's as it is") {
  const Config config(parse_yaml(R"(
datasets:
  train: {class: Subset, dataset: {class: Python, object: "my_data.py:Train", collate_fn: "../sub/more.py:make.it"}}
  validation: {class: Python, object: "torchvision.datasets:MNIST", collate_fn: "my.collate"}
  absolute: {class: Python, object: "/data/my_data.py:Train", kwargs: {object: "my_data.py:Train"}}
eval_hook:
  eval_callbacks:
    own: {class: PythonMetric, metric: "met.py:f"}
    other: {class: PythonMetric, metric: "sklearn.metrics.f1_score"}
text: {object: "my_data.py:Train"}
)",
                                 {"/home/ada/test.yaml", 0}));
  make_paths_absolute(config);
  const auto text = [&](const char* path) { return config.peek(path)->as_text(); };
  CHECK(text("datasets/train/dataset/object") == "/home/ada/my_data.py:Train");
  CHECK(text("datasets/train/dataset/collate_fn") == "/home/sub/more.py:make.it");
  CHECK(text("datasets/validation/object") == "torchvision.datasets:MNIST");
  CHECK(text("datasets/validation/collate_fn") == "my.collate");
  CHECK(text("datasets/absolute/object") == "/data/my_data.py:Train");
  CHECK(text("datasets/absolute/kwargs/object") == "my_data.py:Train");
  CHECK(text("eval_hook/eval_callbacks/own/metric") == "/home/ada/met.py:f");
  CHECK(text("eval_hook/eval_callbacks/other/metric") == "sklearn.metrics.f1_score");
  CHECK(text("text/object") == "my_data.py:Train");
}

}  // namespace python_object_test
}  // namespace stepop
