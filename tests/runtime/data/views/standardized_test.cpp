#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/core/config/yaml_reader.h"
#include "runtime/core/config/yaml_writer.h"
#include "runtime/data/dataset.h"
#include "runtime/data/views/standardization.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"
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
