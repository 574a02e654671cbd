#include <doctest/doctest.h>

#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace classification_report_test {

EvalOutputs stored_classification() {
  const auto& data = expected()["classification"];
  return {.outputs = {{"logits", doubles(data["logits"])}},
          .labels = {{"class", doubles(data["class"]).to(at::kLong)}}};
}

TEST_CASE("precision, recall and F1 are what scikit-learn says") {
  const auto& data = expected()["classification"];
  const auto looked = look("classification_report", stored_classification(), "{by_class: true}");
  CHECK(looked->value("accuracy") == doctest::Approx(data["accuracy"].get<double>()));
  for (const auto& [name, value] : data["averages"].items()) {
    CHECK(looked->value(name) == doctest::Approx(value.get<double>()));
  }
  for (size_t i = 0; i < data["classes"].size(); ++i) {
    for (const char* name : {"precision", "recall", "f1"}) {
      const std::string key = std::to_string(data["classes"][i].get<int>()) + "/" + name;
      CHECK(looked->value(key) == doctest::Approx(data[name][i].get<double>()));
    }
  }
  CHECK(look("classification_report", stored_classification())->logs.scalars.key_list() ==
        "accuracy, macro_precision, macro_recall, macro_f1, weighted_precision, weighted_recall, "
        "weighted_f1");
}

TEST_CASE("the report is a table with the names of the classes") {
  const auto looked = look("classification_report", stored_classification(),
                           "{class_names: [none, cat, dog, a very long-haired cow, horse]}");
  CHECK(looked->text("report.txt") ==
        "                 class  precision  recall      f1  examples\n"
        "                  none     0.7619  0.8889  0.8205        18\n"
        "                   cat     0.5500  0.7333  0.6286        15\n"
        "                   dog     0.5333  0.8000  0.6400        10\n"
        "a very long-haired cow     0.0000  0.0000  0.0000         0\n"
        "                 horse     0.0000  0.0000  0.0000        17\n"
        "\n"
        "         macro average     0.3690  0.4844  0.4178        60\n"
        "      weighted average     0.4550  0.5833  0.5100        60\n"
        "              accuracy     0.5833                        60\n");
}

TEST_CASE("a class that is neither true nor predicted is left out, and classes may come as such") {
  const EvalOutputs outputs{.outputs = {{"said", at::tensor({0, 0, 4, 4})}},
                            .labels = {{"class", at::tensor({0, 4, 4, 4})}}};
  const auto looked = look("classification_report", outputs, "{logits: said}");
  CHECK(looked->value("macro_precision") == 0.75);
  CHECK(looked->value("macro_recall") == doctest::Approx((1 + 2.0 / 3) / 2));
  CHECK(looked->text("report.txt").find("\n               3 ") == std::string::npos);
}

TEST_CASE("numbers that can hardly be classes are refused before room is made for them") {
  const auto message = [](int64_t said, int64_t truth) {
    return message_of([&] {
      look("classification_report", {.outputs = {{"logits", at::tensor({int64_t{0}, said})}},
                                     .labels = {{"class", at::tensor({int64_t{0}, truth})}}});
    });
  };
  const std::string help = "; at most 1,000,000 classes are counted, 0 to 999,999";
  CHECK(message(1, int64_t{1} << 60) ==
        "labels/class has the class 1152921504606846976 in row 1 (example 1 of the dataset)" +
            help);
  CHECK(message(1'000'000, 1) ==
        "outputs/logits has the class 1000000 in row 1 (example 1 of the dataset)" + help);
}

TEST_CASE("another number of names is refused") {
  CHECK(message_of([] {
          look("classification_report", stored_classification(), "{class_names: [a, b]}");
        }) == "test.yaml:1: class_names: expected 5 names, found 2");
}

}  // namespace classification_report_test
}  // namespace stepop
