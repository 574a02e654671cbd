#include <ATen/ops/arange.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "eval_out/callbacks/callback.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/index_range.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace accuracy_test {

class Classes : public Dataset {
 public:
  explicit Classes(at::Tensor classes) : classes_(std::move(classes)) {}
  int64_t size() const override { return classes_.defined() ? classes_.size(0) : 0; }
  Example get(int64_t, Random&) const override { return {}; }
  at::Tensor labels(std::string_view key) const override {
    return key == "class" ? classes_ : at::Tensor();
  }

 private:
  at::Tensor classes_;
};

/// Runs accuracy over a file with these outputs, of the dataset's examples `indices`.
Logs accuracy(const EvalOutputs& outputs, const std::vector<int64_t>& indices,
              const at::Tensor& classes, const char* params = "{}") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  EvalWriter writer(path, static_cast<int64_t>(indices.size()));
  writer.write(outputs, indices);
  writer.finish();
  const EvalFile file(path);
  const Config config(parse_yaml(params, {"test.yaml", 0}));
  try {
    return callbacks().factory("accuracy", config,
                               "")({folder.path(), Classes(classes), file, config, config});
  } catch (const Error& error) {
    std::string message = error.what();
    if (const size_t at = message.find(path); at != std::string::npos) {
      message.replace(at, path.size(), "FILE");
    }
    throw Error(message);
  }
}

double value(const Logs& logs) { return logs.scalars.at("accuracy").read("accuracy"); }

const at::Tensor kLogits =
    at::tensor({5., 1., 0., 0., 2., 1., 0., 3., 9., 7., 2., 1.}).view({4, 3});
// The largest of each row: 0, 1, 2, 0.

TEST_CASE("accuracy is the share of rows whose largest logit is their class") {
  const std::vector<int64_t> all{0, 1, 2, 3};
  CHECK(value(accuracy({.outputs = {{"logits", kLogits}}}, all, at::tensor({0, 1, 2, 0}))) == 1.0);
  CHECK(value(accuracy({.outputs = {{"logits", kLogits}}}, all, at::tensor({0, 2, 1, 0}))) == 0.5);
  CHECK(value(accuracy({.outputs = {{"logits", kLogits}}}, all, at::tensor({1, 0, 0, 1}))) == 0.0);
}

TEST_CASE("the classes come from the file, else from the dataset's labels at the rows' indices") {
  const at::Tensor dataset = at::tensor({9, 0, 9, 1, 2, 9, 0}, at::kInt);
  const std::vector<int64_t> indices{1, 3, 4, 6};
  CHECK(value(accuracy({.outputs = {{"logits", kLogits}}}, indices, dataset)) == 1.0);
  CHECK(value(accuracy(
            {.outputs = {{"logits", kLogits}}, .labels = {{"class", at::tensor({0, 1, 0, 1})}}},
            indices, dataset)) == 0.5);
  CHECK(value(accuracy(
            {.outputs = {{"scores", kLogits}, {"truth", at::tensor({0, 0, 2, 0}, at::kByte)}}},
            indices, {}, "{logits: scores, target: truth}")) == 0.75);
}

TEST_CASE("a row with the class -100 does not count") {
  const std::vector<int64_t> all{0, 1, 2, 3};
  const EvalOutputs outputs{.outputs = {{"logits", kLogits}}};
  CHECK(value(accuracy(outputs, all, at::tensor({0, 1, -100, -100}))) == 1.0);
  CHECK(value(accuracy(outputs, all, at::tensor({0, 0, 2, -100}))) == 2.0 / 3);
  CHECK(message_of([&] {
          accuracy(outputs, all, at::tensor({-100, -100, -100, -100}));
        }) == "nothing counts: \"class\" of the dataset is -100 in every row");
}

TEST_CASE("accuracy over many blocks counts every row once") {
  constexpr int64_t kRows = 30'000;
  constexpr int64_t kClasses = 100;
  const at::Tensor classes = at::arange(kRows).remainder(kClasses);
  at::Tensor predicted = classes.clone();
  predicted.slice(0, 29'990).add_(1).remainder_(kClasses);
  const std::vector<int64_t> indices = index_range(0, kRows);
  const Logs logs = accuracy(
      {.outputs = {{"logits", at::one_hot(predicted, kClasses).to(at::kFloat)}}}, indices, classes);
  CHECK(value(logs) == 29'990.0 / kRows);
}

TEST_CASE("classes of pixels are counted one by one, as classes or as scores of each pixel") {
  const std::vector<int64_t> all{0, 1};
  const at::Tensor truth = at::tensor({0, 1, 2, -100, 2, 1, 0, 0}, at::kChar).view({2, 2, 2});
  const at::Tensor predicted = at::tensor({0, 1, 2, 2, 0, 1, 0, 1}, at::kByte).view({2, 2, 2});
  const double right =
      5.0 / 7;  // the fourth pixel does not count; the fifth and the last are wrong
  CHECK(value(accuracy({.outputs = {{"said", predicted}, {"class", truth}}}, all, {},
                       "{logits: said}")) == right);
  CHECK(value(accuracy(
            {.outputs = {{"logits", at::one_hot(predicted.to(at::kLong), 3).movedim(-1, 1)},
                         {"class", truth}}},
            all, {})) == right);
  CHECK(message_of([&] {
          accuracy({.outputs = {{"logits", kLogits.slice(0, 0, 2)}, {"class", truth}}}, all, {});
        }) == "outputs/logits must have the shape [classes, 2, 2] an example, found [3]");
}

TEST_CASE("what accuracy misses is named") {
  const std::vector<int64_t> all{0, 1, 2, 3};
  const auto message = [&](const EvalOutputs& outputs, const at::Tensor& classes) {
    return message_of([&] { accuracy(outputs, all, classes); });
  };
  const at::Tensor classes = at::tensor({0, 1, 2, 0});
  CHECK(message({.outputs = {{"scores", kLogits}}}, classes) ==
        "no logits: FILE has no outputs/logits; it has: outputs/scores; name another key by "
        "\"logits\"");
  CHECK(message({.outputs = {{"logits", kLogits}}}, {}) ==
        "no true classes: neither the dataset's labels nor FILE have \"class\"; the file has: "
        "outputs/logits; return labels/class from eval_op, or name another key by \"target\"");
  CHECK(message({.outputs = {{"logits", at::ones({4, 3, 2})}}}, classes) ==
        "outputs/logits must have the shape [classes] an example, found [3, 2]");
  CHECK(message({.outputs = {{"logits", kLogits}}, .labels = {{"class", at::ones({4})}}},
                classes) == "labels/class must hold classes as integers, found float32 []");
  CHECK(message({.outputs = {{"logits", kLogits}}}, at::tensor({0, 1})) ==
        "the dataset's labels \"class\" of shape [2] do not fit the 4 rows of FILE");
}

}  // namespace accuracy_test
}  // namespace stepop
