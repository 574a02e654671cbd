#include "runtime/tools/survey/survey.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/core/base/error.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/tools/survey/survey_page.h"
#include "runtime/tools/survey/survey_text.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace survey_test {

/// Example i has the number i, images of i % 4 + 1 rows, and a text; some are bad in some way.
class Mixed : public Dataset {
 public:
  explicit Mixed(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Example get(int64_t index, Random& random) const override {
    if (index % 100 == 17) throw Error(fmt::format("{}.png: it is damaged", index));
    Example example;
    example.tensors.set("number", at::scalar_tensor(index % 3, at::kLong));
    const double value = index == 5 ? std::nan("") : random.uniform();
    example.tensors.set("image", at::full({3, index % 4 + 1, 8}, value, at::kFloat));
    if (index % 2 == 0)
      example.tensors.set("half", at::scalar_tensor(0.25 * static_cast<double>(index % 4)));
    example.texts.set("name", index % 2 == 0 ? "even" : "odd one");
    return example;
  }
  at::Tensor labels(std::string_view key) const override {
    if (key != "number") return {};
    at::Tensor labels = at::arange(size_).remainder(3);
    labels[2] = 0;  // the example has 2
    return labels;
  }
  std::vector<std::string> label_keys() const override { return {"number"}; }

 private:
  int64_t size_;
};

Survey survey_of(const Dataset& dataset, int64_t threads = 2, int64_t examples = -1,
                 int64_t shown = 6) {
  SurveyOptions options;
  options.threads = threads;
  options.examples = examples < 0 ? dataset.size() : examples;
  options.shown = shown;
  return survey_dataset(dataset, options);
}

const KeySummary& key_of(const Survey& survey, const std::string& name) {
  for (const auto& [key, summary] : survey.keys) {
    if (key == name) return summary;
  }
  throw Error("no key " + name);
}

TEST_CASE("whole numbers beyond 2^53 keep their differences") {
  KeySummary summary;
  KeySummary other;
  constexpr int64_t kFirst = 1'600'000'000'000'000'000;  // nanoseconds since 1970
  for (int64_t i = 0; i < 100; ++i) {
    (i % 2 == 0 ? summary : other).add(at::scalar_tensor(kFirst + 7 * i, at::kLong));
  }
  summary.merge(other);
  REQUIRE(summary.deviation());
  // 7 times the deviation of 0, 1, ..., 99.
  CHECK(*summary.deviation() == doctest::Approx(7 * std::sqrt(9999.0 / 12)).epsilon(1e-6));
  CHECK(summary.counts().size() == 100);
  CHECK(summary.counts().at("1600000000000000007") == 1);
}

TEST_CASE("a survey names the bad examples and sums up the others, whatever the threads") {
  const Mixed dataset(400);
  for (const int64_t threads : {1, 2, 7}) {
    CAPTURE(threads);
    const Survey survey = survey_of(dataset, threads);
    CHECK(survey.read == 400);
    CHECK(survey.bad_indices == std::vector<int64_t>{2, 17, 117, 217, 317});
    REQUIRE(survey.bad.size() == 5);
    CHECK(survey.bad[0].problem ==
          "labels(\"number\") of the dataset does not have what the example has: int64 0 and int64 "
          "2");
    CHECK(survey.bad[1].problem == "17.png: it is damaged");
    CHECK(survey.with_nan == std::vector<int64_t>{5});
    CHECK(key_of(survey, "image").nans() == 3 * 2 * 8);
    CHECK(key_of(survey, "image").shape_text() == "[3, 1 to 4, 8]");
    CHECK(key_of(survey, "half").examples() == 199);
    CHECK(key_of(survey, "half").mean().value() == doctest::Approx(0.25).epsilon(0.01));
    CHECK(key_of(survey, "half").deviation().value() == doctest::Approx(0.25).epsilon(0.001));
    CHECK(key_of(survey, "name").shape_text() == "4 to 7 bytes");
    CHECK(key_of(survey, "name").counts() ==
          std::map<std::string, int64_t>{{"even", 199}, {"odd one", 196}});
    std::vector<int64_t> shown;
    for (const auto& [index, example] : survey.shown) shown.push_back(index);
    CHECK(shown == std::vector<int64_t>{0, 66, 133, 200, 266, 333});
  }
}

TEST_CASE("statistics are those of all numbers, also of large ones beside each other") {
  KeySummary one;
  KeySummary two;
  std::vector<double> all;
  for (int i = 0; i < 1000; ++i) {
    const double value = 1e9 + (i * 37) % 101;
    all.push_back(value);
    (i < 300 ? one : two).add(at::scalar_tensor(value, at::kDouble));
  }
  one.merge(two);
  double mean = 0;
  for (const double value : all) mean += value / 1000;
  double squares = 0;
  for (const double value : all) squares += (value - mean) * (value - mean);
  CHECK(one.examples() == 1000);
  CHECK(*one.min() == 1e9);
  CHECK(*one.max() == 1e9 + 100);
  CHECK(*one.mean() == doctest::Approx(mean).epsilon(1e-15));
  CHECK(*one.deviation() == doctest::Approx(std::sqrt(squares / 1000)).epsilon(1e-9));
  CHECK(one.has_many_values());
}

TEST_CASE("a part of a dataset is spread over all of it") {
  const Survey survey = survey_of(Mixed(1000), 2, 10, 3);
  CHECK(survey.read == 10);
  CHECK(survey.size == 1000);
  REQUIRE(survey.shown.size() == 3);
  // Somewhere in the first, the fourth and the seventh tenth.
  CHECK(survey.shown[0].first / 100 == 0);
  CHECK(survey.shown[1].first / 100 == 3);
  CHECK(survey.shown[2].first / 100 == 6);
}

TEST_CASE("labels are loaded only when all examples are read") {
  class Counting : public Mixed {
   public:
    using Mixed::Mixed;
    at::Tensor labels(std::string_view key) const override {
      ++asked;
      return Mixed::labels(key);
    }
    mutable int64_t asked = 0;
  };
  const Counting dataset(200);
  CHECK(survey_of(dataset, 2, 199).read == 199);
  CHECK(dataset.asked == 0);
  CHECK(survey_of(dataset, 2, 200).bad_indices == std::vector<int64_t>{2, 17, 117});
  CHECK(dataset.asked == 1);
}

TEST_CASE("an interruption ends a survey with what was read") {
  const Mixed dataset(100'000'000);
  SurveyOptions options;
  options.threads = 2;
  options.examples = dataset.size();
  options.interrupt = [] { throw Error("stopped"); };
  // Labels of so many examples would take 800 MB.
  class Unlabelled : public Mixed {
   public:
    using Mixed::Mixed;
    std::vector<std::string> label_keys() const override { return {}; }
  };
  const Survey survey = survey_dataset(Unlabelled(dataset.size()), options);
  CHECK(survey.stopped_by != nullptr);
  CHECK(survey.read > 0);
  CHECK(survey.read < dataset.size());
}

TEST_CASE("the table says what a user asks first") {
  const Survey survey = survey_of(Mixed(400));
  const std::string text = survey_text(survey, "datasets/train: Mixed", 120);
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  CAPTURE(text);
  CHECK(has("datasets/train: Mixed, 400 examples, all read in "));
  CHECK(has("48 NaN"));
  CHECK(has("only in 199 of 395 examples"));
  CHECK(has("even: 199, odd one: 196"));
  CHECK(has("\n5 bad examples of 400 that were read: 2, 17, 117, 217, 317\n"));
  CHECK(has("  example 17: 17.png: it is damaged\n"));
  CHECK(has("\nNaN or infinity in 1 example: 5\n"));
}

TEST_CASE("the picture has a place for each image, and none without images") {
  const at::Tensor picture = decode_image(survey_sheet(survey_of(Mixed(400))), "sheet");
  // Six cells of 128 pixels with gaps of 14, three in a row. In each an image of 3 x 8, the highest
  // of the six, 16 times as large, 2 pixels, and "#0", number, half and name, 18 pixels each.
  const int64_t cell = 3 * 16 + 2 + 4 * 18;
  CHECK(picture.sizes() == at::IntArrayRef({3, 14 + 2 * (cell + 14), 14 + 3 * (128 + 14)}));
  class Numbers : public Dataset {
   public:
    int64_t size() const override { return 3; }
    Example get(int64_t index, Random&) const override {
      return {.tensors = {{"x", at::full({4}, index)}}, .texts = {}};
    }
  };
  CHECK(survey_sheet(survey_of(Numbers())).empty());
}

TEST_CASE("tensors of any number of channels are pictures, unless they are small") {
  class Planes : public Dataset {
   public:
    explicit Planes(at::IntArrayRef shape) : shape_(shape.vec()) {}
    int64_t size() const override { return 1; }
    Example get(int64_t, Random&) const override {
      return {.tensors = {{"x", at::full(shape_, -1, at::kFloat)}}, .texts = {}};
    }

   private:
    std::vector<int64_t> shape_;
  };
  const auto sheet = [](at::IntArrayRef shape) { return survey_sheet(survey_of(Planes(shape))); };
  // Two tiles of 8 x 8 pixels, 8 times as large, above the line "#0" of 18.
  CHECK(decode_image(sheet({2, 8, 8}), "sheet").size(1) == 14 + 64 + 2 + 18 + 14);
  CHECK_FALSE(sheet({7, 5, 5}).empty());
  CHECK(sheet({7, 5, 2}).empty());
  CHECK(sheet({16, 16, 3}).empty());  // the channels are last
  // Where RGBA is transparent, the board of two greys is seen.
  const at::Tensor board = decode_image(sheet({4, 16, 16}), "sheet");
  CHECK(std::lround((board[0][18][18].item<double>() + 1) * 127.5) == 153);
  CHECK(std::lround((board[0][18][34].item<double>() + 1) * 127.5) == 204);
}

TEST_CASE("of shares the two largest are shown, in lines of their own where one is too short") {
  const auto shares = [](std::initializer_list<float> values) {
    return short_value(at::tensor(at::ArrayRef<float>(values)));
  };
  CHECK(shares({0, 0, 0, 0.7F, 0, 0.3F, 0, 0, 0, 0}) == "3 0.7, 5 0.3");
  CHECK(shares({0.1F, 0.2F, 0.7F}) == "2 0.7, 1 0.2");
  CHECK(shares({0, 0, 1, 0}) == "2");
  CHECK(shares({0.4F, 0.6F}) == "[0.4, 0.6]");
  CHECK(shares({-0.5F, 0.5F, 1}) == "[-0.5, 0.5, 1]");
  CHECK(shares({0.5F, 0.5F, 1}) == "[0.5, 0.5, 1]");
  class MixedLabels : public Dataset {
   public:
    int64_t size() const override { return 1; }
    Example get(int64_t, Random&) const override {
      at::Tensor label = at::full({20}, 0.0F);
      label[12] = 0.7;
      label[15] = 0.3;
      return {.tensors = {{"image", at::full({3, 16, 16}, 0.0F)}, {"class", label}}, .texts = {}};
    }
  };
  // Below the image there are #0, class, "12 0.7," and "15 0.3".
  CHECK(decode_image(survey_sheet(survey_of(MixedLabels())), "sheet").size(1) ==
        14 + 128 + 2 + 4 * 18 + 14);
}

TEST_CASE(
    "the page plays floats that have a rate beside them, up to 200,000 samples, as long as the "
    "page stays small") {
  class Voices : public Dataset {
   public:
    int64_t size() const override { return 30; }
    Example get(int64_t, Random&) const override {
      return {.tensors = {{"a/audio", at::ones({1, 200'001})},
                          {"a/rate", at::scalar_tensor(8, at::kLong)},
                          {"audio", at::ones({1, 95})}},
              .texts = {}};
    }
  };
  const std::vector<TitledSurvey> surveys = {
      {"datasets/train: Voices", survey_of(Voices(), 2, 30, 30)}};
  const std::string page = survey_page(surveys, "a.yaml");
  const size_t begin = page.find("id=\"data\">") + std::strlen("id=\"data\">");
  const auto json = nlohmann::json::parse(page.substr(begin, page.find("</script>") - begin));
  const auto pictures = json["datasets"][0]["shown"][0]["pictures"];
  REQUIRE(pictures.size() == 1);
  CHECK(pictures[0]["key"] == "a/audio");
  // 400,044 bytes each
  CHECK(json["datasets"][0]["shown"][18]["pictures"].size() == 1);
  CHECK(json["datasets"][0]["shown"][19]["pictures"].empty());
  const ScratchFolder folder;
  const std::string file = folder.write("sound", pictures[0]["data"].get<std::string>());
  CHECK(run_python("import base64, io, sys, wave\n"
                   "w = wave.open(io.BytesIO(base64.b64decode(open(sys.argv[1]).read())))\n"
                   "print(w.getnframes(), w.getframerate(), w.readframes(1).hex())\n",
                   {file}) == "200000 8 ff7f\n");
}

TEST_CASE("the page holds texts as data, never as markup") {
  class Hostile : public Dataset {
   public:
    int64_t size() const override { return 2; }
    Example get(int64_t, Random&) const override {
      return {.tensors = {{"</script><b>", at::scalar_tensor(1, at::kLong)}},
              .texts = {{"a", "</script><img src=x onerror=alert(1)>\xff"}}};
    }
  };
  const std::vector<TitledSurvey> surveys = {{"datasets/train: Hostile", survey_of(Hostile())}};
  const std::string page = survey_page(surveys, "a.yaml");
  CHECK(page.find("</script><b>") == std::string::npos);
  CHECK(page.find("<img src=x") == std::string::npos);
  const size_t begin = page.find("id=\"data\">") + std::strlen("id=\"data\">");
  const auto json = nlohmann::json::parse(page.substr(begin, page.find("</script>") - begin));
  CHECK(json["datasets"][0]["keys"][0]["key"] == "</script><b>");
  CHECK(json["datasets"][0]["shown"].size() == 2);
}

}  // namespace survey_test
}  // namespace stepop
