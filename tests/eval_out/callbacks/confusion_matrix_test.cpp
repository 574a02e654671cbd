#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <sstream>

#include "runtime/core/pictures/image_file.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace confusion_matrix_test {

EvalOutputs stored_classification() {
  const auto& data = expected()["classification"];
  return {.outputs = {{"logits", doubles(data["logits"])}},
          .labels = {{"class", doubles(data["class"]).to(at::kLong)}}};
}

/// The numbers of a table, without its first row and column.
std::vector<std::vector<double>> numbers_of(const std::string& csv) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    auto& row = rows.emplace_back();
    std::istringstream cells(line);
    std::string cell;
    std::getline(cells, cell, ',');
    while (std::getline(cells, cell, ',')) row.push_back(std::stod(cell));
  }
  return rows;
}

TEST_CASE("the confusion matrix is scikit-learn's, with and without normalize") {
  const auto& data = expected()["classification"];
  for (const bool normalize : {false, true}) {
    const auto looked =
        look("confusion_matrix", stored_classification(), normalize ? "{normalize: true}" : "{}");
    const auto rows = numbers_of(looked->text("matrix.csv"));
    const auto& wanted = data[normalize ? "confusion_normalized" : "confusion"];
    REQUIRE(rows.size() == wanted.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t j = 0; j < rows.size(); ++j) {
        CHECK(rows[i][j] == doctest::Approx(wanted[i][j].get<double>()));
      }
    }
    CHECK(looked->value("accuracy") == doctest::Approx(data["accuracy"].get<double>()));
    CHECK(looked->value("balanced_accuracy") ==
          doctest::Approx(data["balanced_accuracy"].get<double>()));
  }
}

TEST_CASE("names are quoted in the table as CSV has it") {
  const EvalOutputs outputs{.outputs = {{"logits", at::tensor({1., 0., 0., 1.}).view({2, 2})}},
                            .labels = {{"class", at::tensor({0, 0})}}};
  const auto looked =
      look("confusion_matrix", outputs, "{class_names: ['a, b', 'say \"c\"'], normalize: true}");
  CHECK(looked->text("matrix.csv") ==
        "true \\ predicted,\"a, b\",\"say \"\"c\"\"\"\n"
        "\"a, b\",0.5,0.5\n"
        "\"say \"\"c\"\"\",0,0\n");
}

TEST_CASE("the picture grows with the classes, up to a size") {
  const auto size = [](int64_t classes) {
    const at::Tensor all = at::arange(classes);
    const auto looked =
        look("confusion_matrix", {.outputs = {{"said", all}, {"class", all}}}, "{logits: said}");
    const at::Tensor image = read_image(looked->folder.path("matrix.png"));
    CHECK(image.size(0) == 3);
    return image.size(2);
  };
  CHECK(size(2) < size(10));
  CHECK(size(10) < size(30));
  CHECK(size(100) < 1300);
  CHECK(size(1000) < 1300);
}

TEST_CASE("too many classes are refused") {
  const EvalOutputs outputs{.outputs = {{"said", at::tensor({2000})}, {"class", at::tensor({0})}}};
  CHECK(message_of([&] { look("confusion_matrix", outputs, "{logits: said}"); }) ==
        "a confusion matrix has at most 2000 classes, found 2001");
}

}  // namespace confusion_matrix_test
}  // namespace stepop
