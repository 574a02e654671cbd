#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/data/dataset.h"
#include "runtime/data/views/example_function.h"
#include "runtime/data/views/standardization.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace standardized_test {

struct Rows {
  Rows()
      : train(folder.write("train.csv", "a,b,c,n\n1,10,5,1\n2,30,5,2\n6,nan,5,3\n")),
        more(folder.write("more.csv", "a,b,c,n\n3,20,6,1\n")) {}

  std::string csv(const std::string& path) const {
    return fmt::format(
        "{{class: Csv, path: {}, missing: nan, columns: {{c: float}}, vectors: {{x: [a, b]}}}}",
        path);
  }
  Config config(const std::string& train_params = "", const std::string& validation = "") const {
    return Config(parse_yaml(
        fmt::format("datasets:\n  train: {{class: Augmented, inner: [{{class: Standardized, "
                    "dataset: {}{}}}]}}\n  validation: {{class: Standardized, fit: train, dataset: "
                    "{}{}}}\n",
                    csv(train), train_params, csv(more), validation),
        {"test.yaml", 0}));
  }

  ScratchFolder folder;
  std::string train;
  std::string more;
};

TEST_CASE("standardized numbers have the mean 0 and the standard deviation 1, NaN aside") {
  const Rows rows;
  const auto dataset = dataset_of("{class: Standardized, dataset: " + rows.csv(rows.train) + "}");
  const double spread = std::sqrt((4.0 + 1 + 9) / 3);
  const std::vector<double> a{-2 / spread, -1 / spread, 3 / spread};
  const at::Tensor x = dataset->labels("x");
  for (int64_t i = 0; i < 3; ++i) {
    CHECK(x[i][0].item<double>() == doctest::Approx(a[static_cast<size_t>(i)]).epsilon(1e-6));
    const at::Tensor one = example_of(*dataset, i).tensors.at("x");
    CHECK(one.equal(x[i]) == (i < 2));  // NaN is no number
    CHECK(one[0].equal(x[i][0]));
    CHECK(batch_of(*dataset, {i})["x"][0][0].equal(x[i][0]));
  }
  CHECK(x[0][1].item<float>() == -1);
  CHECK(x[1][1].item<float>() == 1);
  CHECK(std::isnan(x[2][1].item<float>()));
  CHECK(values_of<float>(dataset->labels("c")) == std::vector<float>{0, 0, 0});  // all the same
  CHECK(values_of<int64_t>(dataset->labels("n")) == std::vector<int64_t>{1, 2, 3});
  CHECK(dataset->label_keys() == std::vector<std::string>{"c", "n", "x"});
}

TEST_CASE("another split takes the numbers of the training split, by its config") {
  const Rows rows;
  const Config config = rows.config();
  const auto validation = datasets().build(config, "datasets/validation");
  const at::Tensor x = validation->labels("x");
  CHECK(x[0][0].item<float>() == 0);  // 3, the mean of 1, 2 and 6
  CHECK(x[0][1].item<float>() == 0);
  CHECK(validation->labels("c").item<float>() == 1);
  const std::string saved = to_yaml(*config.root().peek());
  CHECK(saved.find("mean:") != std::string::npos);
  const Standardization numbers(config, "train", "x");
  CHECK(numbers.mean() == std::vector<double>{3, 20});
  CHECK(numbers.undo(x).equal(at::tensor({3.F, 20.F}).view({1, 2})));
  // A later start needs no training data.
  rows.folder.write("train.csv", "a,b,c,n\n");
  const Config later(parse_yaml(saved, {"test.yaml", 0}));
  CHECK(datasets().build(later, "datasets/validation")->labels("x").equal(x));
  CHECK(Standardization(later, "train", "x").std() == numbers.std());
  CHECK(message_of([&] { Standardization(later, "train", "y"); }) ==
        "datasets/train/inner/0: \"y\" is not standardized; its keys are: c, x");
}

TEST_CASE("images have a mean for each channel; examples that are read one by one are the same") {
  const std::string images = "{class: Facades, examples: 3, size: 16}";
  const auto plain = dataset_of(images);
  const auto dataset = dataset_of("{class: Standardized, keys: [input], dataset: " + images + "}");
  std::vector<at::Tensor> parts;
  std::vector<at::Tensor> standard;
  for (int64_t i = 0; i < 3; ++i) {
    parts.push_back(example_of(*plain, i).tensors.at("input"));
    standard.push_back(example_of(*dataset, i).tensors.at("input"));
    CHECK(example_of(*dataset, i)
              .tensors.at("target")
              .equal(example_of(*plain, i).tensors.at("target")));
  }
  const at::Tensor all = at::stack(parts).to(at::kDouble);
  const at::Tensor made = at::stack(standard).to(at::kDouble);
  const at::Tensor mean = all.mean(at::IntArrayRef({0, 2, 3}), true);
  const at::Tensor std = all.sub(mean).square().mean(at::IntArrayRef({0, 2, 3}), true).sqrt();
  CHECK(made.allclose(all.sub(mean).div(std), 1e-4, 1e-5));
}

/// Times in seconds since 1970, every seven: (i - 49.5) / sqrt(9999 / 12) when standardized, by the
/// variance of 0, 1, ..., 99.
double standardized_time(int64_t i) {
  return (static_cast<double>(i) - 49.5) / std::sqrt(9999.0 / 12);
}

/// Whether `key` of 100 rows, at `place` of the key's vector, is what standardized times are.
void check_times(const Dataset& dataset, const std::string& key) {
  const at::Tensor labels = dataset.labels(key);
  REQUIRE((labels.scalar_type() == at::kFloat));
  for (const int64_t i : {0, 1, 2, 50, 99}) {
    CAPTURE(i);
    CHECK(labels[i].flatten()[0].item<double>() ==
          doctest::Approx(standardized_time(i)).epsilon(1e-6));
    CHECK(example_of(dataset, i).tensors.at(key).equal(labels[i]));
    CHECK(batch_of(dataset, {i})[key][0].equal(labels[i]));
  }
}

TEST_CASE("large numbers are subtracted before they become float32") {
  const ScratchFolder folder;
  std::string rows = "t,seconds,nanoseconds,x\n";
  std::string lines;
  for (int64_t i = 0; i < 100; ++i) {
    rows += fmt::format("{0},{0}.25,{1},{2}\n", 1600000000 + 7 * i,
                        1600000000000000000 + 70000000 * i, i);
    lines += fmt::format("{{\"t\": {0}.25, \"n\": {0}}}\n", 1600000000 + 7 * i);
  }
  const std::string csv = "{class: Csv, path: " + folder.write("a.csv", rows);
  const std::string json = "{class: JsonLines, path: " + folder.write("a.jsonl", lines);
  const auto over = [](const std::string& keys, const std::string& data) {
    return dataset_of("{class: Standardized, keys: [" + keys + "], dataset: " + data + "}");
  };
  check_times(*over("t", csv + "}"), "t");                      // int64
  check_times(*over("nanoseconds", csv + "}"), "nanoseconds");  // beyond 2^53
  check_times(*over("seconds", csv + "}"), "seconds");          // floats
  check_times(*over("seconds", "{class: Subset, range: [0, 100], dataset: " + csv + "}}"),
              "seconds");
  check_times(*over("v", csv + ", vectors: {v: [t, x]}}"), "v");
  check_times(*over("t", json + "}"), "t");
  check_times(*over("n", json + ", floats: [n]}"), "n");
  // A key that nobody standardizes is float32, as before.
  const auto rest = over("x", csv + "}");
  CHECK((rest->labels("seconds").scalar_type() == at::kFloat));
  CHECK(rest->notice() == "warning: " + folder.path("a.csv") +
                              ": \"seconds\": float32 rounds its numbers by up to 95.37, and "
                              "their standard deviation is 202.1; a Standardized around the table "
                              "subtracts before it rounds");
  CHECK(over("seconds", csv + "}")->notice().empty());
}

TEST_CASE("float64 of NumPy is subtracted before it becomes float32") {
  const ScratchFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "t = 1.6e9 + 7 * np.arange(100.0)\n"
      "np.save(sys.argv[1] + '/t.npy', t)\n"
      "np.save(sys.argv[1] + '/n.npy', t.astype('i8'))\n",
      {folder.path()});
  for (const char* name : {"t", "n"}) {
    check_times(
        *dataset_of(fmt::format("{{class: Standardized, keys: [{0}], dataset: {{class: Npy, "
                                "files: {{{0}: {1}/{0}.npy}}}}}}",
                                name, folder.path())),
        name);
  }
}

TEST_CASE("views that pass numbers on leave them float64 for a Standardized around them") {
  const ScratchFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "np.save(sys.argv[1] + '/t.npy', 1.6e9 + 7 * np.arange(100.0))\n",
      {folder.path()});
  std::string rows = "t\n";
  std::string lines;
  for (int64_t i = 0; i < 100; ++i) {
    rows += fmt::format("{}.25\n", 1600000000 + 7 * i);
    lines += fmt::format("{{\"t\": {}.25}}\n", 1600000000 + 7 * i);
  }
  const std::string npy = "{class: Npy, files: {t: " + folder.path("t.npy") + "}}";
  const std::string csv = "{class: Csv, path: " + folder.write("a.csv", rows) + "}";
  const std::string json = "{class: JsonLines, path: " + folder.write("a.jsonl", lines) + "}";
  const std::string numbers = folder.write("n.csv", [] {
    std::string text = "n\n";
    for (int i = 0; i < 100; ++i) text += fmt::format("{}\n", i);
    return text;
  }());
  for (const std::string& reader : {npy, csv, json}) {
    for (const char* view :
         {"{{class: Map, function: {{class: select, keys: [t]}}, dataset: {}}}",
          "{{class: Map, function: [{{class: rename, keys: {{t: u}}}}, {{class: rename, keys: {{u: "
          "t}}}}], dataset: {}}}",
          "{{class: Cached, dataset: {}}}", "{{class: Cached, fill: start, dataset: {}}}",
          "{{class: LabelsOnly, dataset: {}}}",
          "{{class: Cached, dataset: {{class: Map, function: {{class: select, keys: [t]}}, "
          "dataset: "
          "{}}}}}"}) {
      const std::string data = fmt::format(fmt::runtime(view), reader);
      CAPTURE(data);
      const auto dataset = dataset_of("{class: Standardized, keys: [t], dataset: " + data + "}");
      check_times(*dataset, "t");
      CHECK(dataset->notice().empty());
    }
    const auto joined = dataset_of(
        "{class: Standardized, keys: [time/t], dataset: {class: Labels, prefix: time, dataset: "
        "{class: Csv, path: " +
        numbers + "}, table: " + reader + "}}");
    check_times(*joined, "time/t");
  }
}

/// Passes its numbers on, but might compute with them.
class AnyFunction : public ExampleFunction {
 public:
  explicit AnyFunction(const Config& /*params*/) {}
  Example operator()(Example example, Random& /*random*/) const override { return example; }
};
STEPOP_REGISTER_EXAMPLE_FUNCTION(any_function_of_standardized_test, AnyFunction,
                                 {"Passes examples on.", {}});

TEST_CASE("a Standardized around numbers that float32 has rounded before says so") {
  const ScratchFolder folder;
  std::string rows = "t\n";
  for (int64_t i = 0; i < 100; ++i) rows += fmt::format("{}.25\n", 1600000000 + 7 * i);
  const std::string csv = "{class: Csv, path: " + folder.write("a.csv", rows) + "}";
  const std::string said =
      "warning: Standardized: \"t\" comes as float32, which rounds numbers of this size by up to "
      "95.37, before the mean is subtracted; a Standardized right around the dataset that reads "
      "the file subtracts first";
  for (const std::string& data :
       {"{class: Map, function: any_function_of_standardized_test, dataset: " + csv + "}",
        "{class: Cached, folder: " + folder.path("cache") + ", dataset: " + csv + "}",
        "{class: Concat, datasets: [" + csv + ", " + csv + "]}"}) {
    CAPTURE(data);
    CHECK(dataset_of("{class: Standardized, dataset: " + data + "}")->notice().find(said) !=
          std::string::npos);
  }
}

TEST_CASE("readers of float64 say what float32 rounds away, unless a Standardized subtracts") {
  const ScratchFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "t = 1.6e9 + 7 * np.arange(100.0)\n"
      "np.save(sys.argv[1] + '/t.npy', t)\n"
      "np.save(sys.argv[1] + '/two.npy', np.stack([t - 1.6e9, t], 1))\n"
      "np.save(sys.argv[1] + '/small.npy', t - 1.6e9)\n",
      {folder.path()});
  std::string lines;
  for (int64_t i = 0; i < 100; ++i) {
    lines += fmt::format("{{\"t\": {0}.0, \"x\": {1}.5}}\n", 1600000000 + 7 * i, i);
  }
  const std::string path = folder.write("a.jsonl", lines);
  const std::string loss =
      "float32 rounds its numbers by up to 95.37, and their standard deviation is 202.1; a "
      "Standardized around the ";
  const auto npy = [&](const std::string& name) {
    return "{class: Npy, files: {" + name + ": " + folder.path(name + ".npy") + "}";
  };
  for (const char* name : {"t", "two"}) {
    CHECK(dataset_of(npy(name) + "}")->notice() ==
          fmt::format("warning: {}: \"{}\": {}array subtracts before it rounds",
                      folder.path(std::string(name) + ".npy"), name, loss));
    CHECK(dataset_of(npy(name) + ", float64: true}")->notice().empty());
    CHECK(dataset_of("{class: Standardized, dataset: " + npy(name) + "}}")->notice().empty());
  }
  CHECK(dataset_of(npy("small") + "}")->notice().empty());
  const std::string json = "{class: JsonLines, path: " + path + "}";
  CHECK(dataset_of(json)->notice() ==
        fmt::format("warning: {}: \"t\": {}lines subtracts before it rounds", path, loss));
  CHECK(dataset_of("{class: Standardized, dataset: " + json + "}")->notice().empty());
}

TEST_CASE("the mean of whole numbers beyond 2^53 is kept to the last digit") {
  const ScratchFolder folder;
  run_python(
      "import sys, numpy as np\n"
      "np.save(sys.argv[1] + '/ns.npy', 1600000000000000000 + 100 * np.arange(11))\n"
      "np.save(sys.argv[1] + '/at.npy', 2**53 + 3 * np.arange(11))\n"
      "np.save(sys.argv[1] + '/top.npy', 2**63 - 1 - 3 * np.arange(11))\n"
      "np.save(sys.argv[1] + '/wide.npy', 2.0**60 + 256 * np.arange(11))\n"
      "np.save(sys.argv[1] + '/both.npy', np.stack([np.arange(11), 2**62 + np.arange(11)], 1)\n"
      "        [:, ::-1].copy())\n",
      {folder.path()});
  for (const char* name : {"ns", "at", "top", "wide", "both"}) {
    CAPTURE(name);
    const Config config(parse_yaml(fmt::format("data: {{class: Standardized, keys: [t], dataset: "
                                               "{{class: Npy, files: {{t: {}/{}.npy}}}}}}",
                                               folder.path(), name),
                                   {"test.yaml", 0}));
    const auto dataset = datasets().build(config, "data");
    const Config later(parse_yaml(to_yaml(*config.root().peek()), {"test.yaml", 0}));
    CHECK(datasets().build(later, "data")->labels("t").equal(dataset->labels("t")));
    const at::Tensor all = dataset->labels("t").reshape({11, -1});
    const at::Tensor values = all.select(1, 0);
    CHECK(all.select(1, all.size(1) - 1).equal(values));
    const double sign = std::string(name) == "top" ? -1 : 1;
    for (int64_t i = 0; i < 11; ++i) {  // the variance of 0, 1, ..., 10 is 10
      CHECK(values[i].item<double>() ==
            doctest::Approx(sign * static_cast<double>(i - 5) / std::sqrt(10.0)).epsilon(1e-6));
      CHECK(example_of(*dataset, i).tensors.at("t").equal(dataset->labels("t")[i]));
    }
  }
}

TEST_CASE("what is undone has the digits of its mean") {
  const Standardization times({1600000346.5}, {202.07});
  const at::Tensor back = times.undo(at::tensor({1.5F}));
  CHECK(back.item<double>() == doctest::Approx(1600000346.5 + 1.5 * 202.07).epsilon(1e-12));
  const at::Tensor small = Standardization({0.5}, {0.25}).undo(at::tensor({1.5F}));
  CHECK((small.scalar_type() == at::kFloat));
}

TEST_CASE("what cannot be standardized is reported") {
  const Rows rows;
  const auto message = [&](const std::string& more, const std::string& data) {
    return message_of(
        [&] { dataset_of("{class: Standardized, " + more + "dataset: " + data + "}"); });
  };
  const std::string csv = rows.csv(rows.train);
  CHECK(message("keys: [z], ", csv) ==
        "Standardized: the examples have no tensor \"z\"; they have: c, n, x");
  CHECK(message("", "{class: Csv, path: " + rows.folder.write("i.csv", "n\n1\n") + "}") ==
        "Standardized: the examples have no floats; they have: n");
  CHECK(message("", "{class: Csv, path: " + rows.folder.write("j.csv", "n\n1.5\ninf\n") + "}") ==
        "Standardized: example 1: \"n\": expected numbers, found an infinite number");
  CHECK(message("", "{class: Csv, columns: {n: float}, missing: nan, path: " +
                        rows.folder.write("k.csv", "n,m\n,1\n") + "}") ==
        "Standardized: every value of \"n\" is NaN");
  CHECK(message("mean: {x: 1}, ", csv) ==
        "test.yaml:1: data/std: missing; give it in a config, or on the command line as --data/std "
        "VALUE");
  CHECK(message("mean: {c: 1}, std: {c: 0}, ", csv) ==
        "test.yaml:1: data/std/c: expected above 0, found 0");
  CHECK(message("mean: {c: 1}, std: {x: 0}, ", csv) ==
        "test.yaml:1: data/std: expected the keys of mean, c, found x");
  const auto other = dataset_of(
      "{class: Standardized, mean: {x: [1, 2, 3]}, std: {x: [1, 2, 3]}, "
      "dataset: " +
      csv + "}");
  CHECK(
      message_of([&] { example_of(*other, 0); }) ==
      "the mean has 3 numbers, which do not fit float32 [2]; fit it anew: leave out mean and std");
}

}  // namespace standardized_test
}  // namespace stepop
