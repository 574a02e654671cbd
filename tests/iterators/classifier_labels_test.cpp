// The classifier's labels of images, tokens and pixels, against PyTorch and torchmetrics.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "iterators/classifier/class_pictures.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/data/dataset.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace classifier_labels_test {

constexpr int64_t kClasses = 5;
constexpr int64_t kExamples = 4;

/// Makes a class rare: in the first half it is another one.
void make_uneven(at::Tensor& classes) {
  at::Tensor half = classes.slice(0, 0, classes.size(0) / 2);
  half.masked_fill_(half == 4, 3);
}

/// Scores and classes as make_classifier_expected.py makes them. `ignore` is the label of what does
/// not count, `form` that of the classes.
class TestScores : public Dataset {
 public:
  explicit TestScores(const Config& params) {
    static const std::map<std::string, std::vector<int64_t>> kShapes = {
        {"image", {}}, {"tokens", {6}}, {"pixels", {3, 5}}};
    std::vector<int64_t> shape = kShapes.at(params.get("kind", "pixels"));
    const int64_t labels =
        std::accumulate(shape.begin(), shape.end(), kExamples, std::multiplies<>());
    classes_ = (at::arange(labels) * 7).remainder(kClasses);
    if (params.get("uneven", false)) make_uneven(classes_);
    classes_.slice(0, 0, labels, 4).fill_(params.get("ignore", -100));
    shape.insert(shape.begin(), kExamples);
    classes_ = classes_.view(shape);
    shape.insert(shape.begin() + 1, kClasses);
    scores_ = (at::arange(labels * kClasses, at::kFloat).sin() * 3).view(shape);
    const auto form = params.get("form", "classes");
    if (form == "soft") classes_ = (scores_ * 0.5).cos().square().softmax(1);
    if (form == "bytes") classes_ = classes_.to(at::kByte);
    if (form == "wrapped") classes_ = classes_.unsqueeze(1);
    if (form == "picture") classes_ = classes_.unsqueeze(1).to(at::kFloat);
    if (form == "large") classes_ = classes_.repeat({1, 2, 2});
    is_short_ = form == "short";
    has_labels_ = params.get("labels", false);
  }
  int64_t size() const override { return kExamples; }
  Example get(int64_t index, Random&) const override {
    if (is_short_ && index == 1) {
      return {.tensors = {{"photo", scores_[index].slice(1, 0, 2)},
                          {"label", classes_[index].slice(0, 0, 2)}},
              .texts = {}};
    }
    return {.tensors = {{"photo", scores_[index]}, {"label", classes_[index]}}, .texts = {}};
  }
  at::Tensor labels(std::string_view key) const override {
    return has_labels_ && key == "label" ? classes_ : at::Tensor();
  }

 private:
  at::Tensor scores_;
  at::Tensor classes_;
  bool has_labels_ = false;
  bool is_short_ = false;
};

STEPOP_REGISTER_DATASET(TestScores, {"For tests.",
                                     {{"kind", "pixels", ""},
                                      {"form", "classes", ""},
                                      {"ignore", "-100", ""},
                                      {"uneven", "false", ""},
                                      {"labels", "false", ""}}});

/// Its input times a parameter that begins with 1.
class TestFactor : public Network {
 public:
  explicit TestFactor(const Config& params)
      : factor_(register_parameter("factor", at::ones({}))), last_(params.get("last", false)) {}
  at::Tensor forward(const at::Tensor& x) override {
    return last_ ? (x * factor_).movedim(1, -1) : x * factor_;
  }

 private:
  at::Tensor factor_;
  bool last_;
};

STEPOP_REGISTER_MODEL(TestFactor, {"For tests.", {{"last", "false", ""}}});

const nlohmann::json& expected() {
  static const auto kAll = nlohmann::json::parse(
      read_bytes(STEPOP_SOURCE_DIR "/tests/iterators/classifier_expected.json"));
  return kAll;
}

/// One step of SGD, by default with the rate 1: the factor that it ends with is 1 less the slope of
/// the loss.
std::string config_of(const std::string& data, const std::string& more = "",
                      const std::string& keys = "target: label\nmodel: TestFactor\n",
                      double rate = 1) {
  return fmt::format(
      "iterator: Classifier\ninput: photo\n{2}num_steps: 1\n"
      "optimizer: {{class: SGD, lr: {3}}}\nsamplers: {{train: sequential}}\nbatch_size: "
      "4\nlog_freq: "
      "1\n"
      "datasets:\n  train: {{class: TestScores, {0}}}\n  validation: {{class: TestScores, "
      "{0}}}\n{1}",
      data, more, keys, rate);
}

double last_of(const TestRun& run, const std::string& name) {
  double value = std::nan("");
  for (const auto& line : run.metrics()) {
    if (line.contains(name)) value = line.at(name).get<double>();
  }
  return value;
}

double first_of(const TestRun& run, const std::string& name) {
  for (const auto& line : run.metrics()) {
    if (line.contains(name)) return line.at(name).get<double>();
  }
  return std::nan("");
}

TEST_CASE("loss and gradient are PyTorch's, whatever the labels, the smoothing and the weights") {
  int rows = 0;
  for (const auto& row : expected().at("losses")) {
    const std::string kind = row.at("kind");
    const bool is_soft = row.at("soft");
    for (const int64_t ignore : {-100, 255}) {
      CAPTURE(row.dump());
      CAPTURE(ignore);
      TestRun run(config_of(
          fmt::format("kind: {}, form: {}, ignore: {}", kind, is_soft ? "soft" : "classes", ignore),
          fmt::format("ignore: {}\nlabel_smoothing: {}\nclass_weights: {}\n", ignore,
                      row.at("label_smoothing").dump(), row.at("class_weights").dump())));
      run.train();
      CHECK(first_of(run, "train/log_op/loss") == doctest::Approx(row.at("loss")).epsilon(1e-6));
      CHECK(1 - run.checkpoint(1).at("model.factor").item<double>() ==
            doctest::Approx(row.at("slope")).epsilon(1e-5));
      ++rows;
    }
  }
  CHECK(rows == 48);
}

TEST_CASE(
    "an evaluation of pixels has torchmetrics' accuracy and mean IoU, in batches of any size") {
  for (const std::string data : {"ignore: -100", "ignore: 255, form: bytes"}) {
    for (const int size : {1, 3, 4}) {
      CAPTURE(data);
      CAPTURE(size);
      // The factor stays above 0, so that the largest scores are those of the expected values.
      TestRun run(config_of(
          data, fmt::format("ignore: 255\nmetrics: {{m: MeanIoU}}\ntest_batch_size: {}\n", size),
          "target: label\nmodel: TestFactor\n", 1e-3));
      run.session.check();
      run.train();
      CHECK(last_of(run, "validation/eval_op/iou/MeanIoU") ==
            doctest::Approx(expected().at("iou")).epsilon(1e-6));
      CHECK(last_of(run, "validation/eval_op/accuracy/accuracy") ==
            doctest::Approx(expected().at("accuracy")).epsilon(1e-6));
      CHECK(first_of(run, "train/log_op/accuracy") ==
            doctest::Approx(expected().at("accuracy")).epsilon(1e-6));
      CHECK(first_of(run, "train/log_op/m") == doctest::Approx(expected().at("iou")).epsilon(1e-6));
    }
  }
}

TEST_CASE(
    "images and tokens have an accuracy, also in batches of different lengths, and no mean IoU") {
  for (const std::string data : {"kind: image", "kind: tokens", "kind: tokens, form: short"}) {
    CAPTURE(data);
    const bool is_short = data.ends_with("short");
    std::string config = config_of(data, "test_batch_size: 1\n");
    if (is_short) config.replace(config.find("\nbatch_size: 4"), 14, "\nbatch_size: 1");
    TestRun run(config);
    run.train();
    const double accuracy = last_of(run, "validation/eval_op/accuracy/accuracy");
    CHECK(accuracy > 0);
    CHECK((is_short || accuracy == doctest::Approx(last_of(run, "validation/log_op/accuracy"))));
    CHECK(std::isnan(last_of(run, "validation/eval_op/iou/MeanIoU")));
  }
}

TEST_CASE("labels that do not count are in no number") {
  const ScratchFolder folder;
  const std::string path =
      folder.write("rows.jsonl",
                   "{\"x\": [1, 0], \"y\": 0}\n{\"x\": [0, 1], \"y\": 1}\n"
                   "{\"x\": [1, 0], \"y\": -100}\n{\"x\": [0, 1], \"y\": -100}\n");
  const std::string data = "{class: JsonLines, floats: [x], path: " + path + "}\n";
  for (const int size : {1, 2, 3, 4}) {
    CAPTURE(size);
    TestRun run(
        "iterator: Classifier\nmodel: TestFactor\ninput: x\ntarget: y\nnum_steps: 1\n"
        "optimizer: {class: SGD, lr: 1}\nbatch_size: 4\nlog_freq: 1\nsamplers: {train: "
        "sequential}\ndatasets:\n  train: " +
        data + "  validation: " + data + fmt::format("test_batch_size: {}\n", size));
    run.train();
    CHECK(first_of(run, "train/log_op/loss") == doctest::Approx(std::log(1 + std::exp(-1.0))));
    CHECK(first_of(run, "train/log_op/accuracy") == 1.0);
    CHECK(last_of(run, "validation/eval_op/accuracy/accuracy") == 1.0);
    const double factor = run.checkpoint(1).at("model.factor").item<double>();
    CHECK(last_of(run, "validation/eval_op/loss") ==
          doctest::Approx(std::log(1 + std::exp(-factor))));
  }
}

TEST_CASE("pixels are logged as pictures with a colour for each class") {
  TestRun run(config_of("kind: pixels"));
  run.train();
  for (const char* name : {"target", "prediction"}) {
    CHECK(std::filesystem::exists(
        fmt::format("{}/train/train/log_op/{}_0000001.png", run.root(), name)));
  }
  // The colours of VOClabelcolormap, and that of its void.
  const at::Tensor colours =
      ((class_pictures(at::tensor({0, 1, 2, 8, 15, 20, 254, -100}).view({1, 2, 4})) + 1) * 127.5)
          .round();
  CHECK(colours.sizes() == at::IntArrayRef{1, 3, 2, 4});
  const at::Tensor rows = colours.movedim(1, -1).reshape({8, 3}).to(at::kLong);
  CHECK(rows.equal(at::tensor({0,   0,   0,   128, 0,  0,   0,  128, 0,   64,  0,   0,
                               192, 128, 128, 0,   64, 128, 96, 224, 192, 224, 224, 192})
                       .view({8, 3})));
}

TEST_CASE("balanced weights are n / (classes * count), from labels at hand or from every example") {
  at::Tensor classes = (at::arange(60) * 7).remainder(5);
  make_uneven(classes);
  classes.slice(0, 0, 60, 4).fill_(-100);
  std::string weights;
  for (int64_t i = 0; i < kClasses; ++i) {
    weights += fmt::format("{}{}", i == 0 ? "" : ", ",
                           45.0 / (5 * classes.eq(i).sum().to(at::kDouble).item<double>()));
  }
  const auto loss = [](const std::string& data, const std::string& more) {
    TestRun run(config_of(data, more));
    run.session.check();
    run.train();
    return last_of(run, "validation/eval_op/loss");
  };
  const double by_list = loss("uneven: true", "class_weights: [" + weights + "]\n");
  CHECK(by_list != doctest::Approx(loss("uneven: true", "")));
  for (const char* data : {"uneven: true, labels: true", "uneven: true, labels: false"}) {
    CAPTURE(data);
    CHECK(loss(data, "class_weights: balanced\n") == doctest::Approx(by_list).epsilon(1e-6));
  }
  CHECK(loss("form: soft", "class_weights: balanced\n") > 0);
}

TEST_CASE("balanced weights are those of the run: a resume does not count again") {
  const char* name = "hooks/class_weights.weights";
  const std::string more = "class_weights: balanced\n";
  TestRun first(config_of("kind: pixels", more));
  first.train();
  const at::Tensor weights = first.checkpoint(1).at(name);
  std::string longer = config_of("kind: pixels, ignore: 0", more);
  longer.replace(longer.find("num_steps: 1"), 12, "num_steps: 2");
  TestRun second(longer, first, 1);
  second.train();
  CHECK(second.checkpoint(2).at(name).equal(weights));
  TestRun other(longer);
  other.train();
  CHECK_FALSE(other.checkpoint(2).at(name).equal(weights));
}

std::string said_of(const std::string& data, const std::string& more = "",
                    const std::string& keys = "target: label\nmodel: TestFactor\n") {
  return message_of([&] {
    Session session(test_config(config_of(data, more, keys)), true, false, false);
    session.check();
  });
}

TEST_CASE("what a user with masks meets is said with its remedy") {
  CHECK(said_of("kind: pixels") == "no error");
  CHECK(said_of("ignore: 255") ==
        "train/step_op: \"label\" of the example 0 is 255: the network has 5 outputs, classes 0 to "
        "4; \"ignore: 255\" leaves it out, as void pixels of Pascal VOC and Cityscapes are");
  CHECK(said_of("ignore: -1") ==
        "train/step_op: \"label\" of the example 0 is -1: the network has 5 outputs, classes 0 to "
        "4; \"ignore: -1\" leaves it out");
  CHECK(said_of("form: wrapped") ==
        "train/step_op: \"label\" is int64 [4, 1, 3, 5]; expected int64 [4, 3, 5], classes for the "
        "logits [4, 5, 3, 5]; .squeeze(1) makes it so");
  CHECK(said_of("form: picture") ==
        "train/step_op: \"label\" is float32 [4, 1, 3, 5]; expected int64 [4, 3, 5], classes for "
        "the logits [4, 5, 3, 5]; a mask that is read as a picture has numbers from -1 to 1: its "
        "class numbers are read by \"mask\" in place of \"image\", columns: {file: mask}, or are "
        ".squeeze(1).to(at::kLong) where they are whole");
  CHECK(said_of("form: large") ==
        "train/step_op: \"label\" is int64 [4, 6, 10]; expected int64 [4, 3, 5], classes for the "
        "logits [4, 5, 3, 5]; the network has to give logits of 6 x 10 pixels, or \"size: [3, 5]\" "
        "in the dataset's config makes masks of those it gives");
  CHECK(said_of("kind: pixels", "", "target: label\nmodel: {class: TestFactor, last: true}\n")
            .find("[4, 3, 5, 5]; logits have their classes in the second dimension: .movedim(-1, "
                  "1) in the network puts them there") != std::string::npos);
  CHECK(said_of("kind: pixels", "", "target: mask\nmodel: TestFactor\n") ==
        "train/step_op: the batch has no tensor \"mask\"; there are: photo, label, index; the "
        "config's key \"target\" names another one");
  const ScratchFolder scratch;
  const std::string table = scratch.write("t.csv", "id,churn\n1,no\n2,yes\n3,no\n");
  const std::string split = "{class: Csv, path: " + table + ", vectors: {image: [id]}}";
  CHECK(message_of([&] {
          Session session(
              test_config("iterator: Classifier\nmodel: {class: MLP, inputs: 1, classes: "
                          "2}\ninput: image\ndatasets: {train: " +
                          split + ", validation: " + split +
                          "}\nbatch_size: 2\nnum_steps: 2\noptimizer: Adam\n"),
              true, false, false);
          session.check();
        })
            .ends_with("the config's key \"target\" names another one, and a column of the Csv "
                       "becomes it by columns: {COLUMN: {type: class, key: class}}"));
}

TEST_CASE("wrong keys of the classifier are found before a run has its folder") {
  CHECK(
      said_of("kind: pixels", "class_weights: [1, 2]\n")
          .find("class_weights: expected a weight for each of the network's 5 outputs, found 2") !=
      std::string::npos);
  CHECK(said_of("kind: pixels", "class_weights: [1, 2, -1, 1, 1]\n")
            .find("class_weights: expected numbers of 0 or more, found -1") != std::string::npos);
  CHECK(said_of("kind: pixels", "class_weights: balance\n")
            .find("class_weights: expected balanced, or a list with a weight for each class, found "
                  "\"balance\"") != std::string::npos);
  CHECK(said_of("kind: pixels", "label_smoothing: 1.5\n")
            .find("label_smoothing: expected a number from 0 to 1, found 1.5") !=
        std::string::npos);
  CHECK(said_of("kind: pixels", "ignore: 3\nclass_weights: balanced\n")
            .find("class_weights: balanced: no example of datasets/train has the class 3 of the "
                  "network's 5 outputs") != std::string::npos);
}

}  // namespace classifier_labels_test
}  // namespace stepop
