// Evaluators that measure a dataset of their own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/iterators/extensible/evaluator_runs.h"
#include "tests/message_of.h"

namespace stepop {
namespace extensible_evaluators_test {

/// `text` without the line that begins with `begin`.
std::string without_line(std::string text, const std::string& begin) {
  const size_t at = text.find("\n" + begin);
  return text.erase(at, text.find('\n', at + 1) - at);
}

/// A config with two further datasets, of 5 and of 7 examples.
std::string with_datasets(const std::string& evaluators) {
  std::string text = config(evaluators);
  const std::string tensors = "tensors: {lq: [3, 8, 8], hq: [3, 16, 16]}}\n";
  return text.insert(text.find("networks:"),
                     "  faces: {class: RandomTensors, size: 5, " + tensors +
                         "  towns: {class: RandomTensors, size: 7, seed: 9, " + tensors);
}

TEST_CASE("an evaluator with a dataset of its own measures that one alone, also without another") {
  const std::string fid =
      "{type: fid, real: hq, fake: gen, range: [0, 1], dataset: faces, features: " +
      networks().path("mean.pt") + "}";
  const std::string psnr = "{type: psnr, real: hq, fake: gen, range: [0, 1], dataset: towns}";
  const std::string text =
      with_datasets("{fid: " + fid + ", psnr: " + psnr +
                    ", any: {type: psnr, real: hq, fake: gen, range: [0, 1]}}");
  TestRun run(text);
  run.train();
  for (const int64_t step : {2, 4}) {  // as eval_hook/freq says
    const nlohmann::json numbers = numbers_of(run, step);
    CHECK(numbers.contains("faces/fid/fid"));
    CHECK(numbers.contains("towns/psnr"));
    CHECK(numbers.contains("validation/eval_op/any"));
    CHECK(numbers.contains("towns/any"));
    CHECK_FALSE(numbers.contains("towns/fid/fid"));
    CHECK_FALSE(numbers.contains("validation/eval_op/fid/fid"));
    CHECK_FALSE(numbers.contains("faces/psnr"));
    CHECK_FALSE(numbers.contains("validation/eval_op/psnr"));
    CHECK(outputs_of(run, step, "faces").read("outputs/fid/real").size(0) == 5);
    CHECK_FALSE(outputs_of(run, step).contains("outputs/fid/real"));
    CHECK(outputs_of(run, step, "towns").read("labels/psnr").size(0) == 7);
  }

  // Instead of the validation split: the same numbers.
  TestRun alone(without_line(text, "  validation:"));
  alone.train();
  CHECK(numbers_of(alone, 4)["faces/fid/fid"] == numbers_of(run, 4)["faces/fid/fid"]);
  CHECK(numbers_of(alone, 4)["towns/psnr"] == numbers_of(run, 4)["towns/psnr"]);
}

TEST_CASE("a dataset of an evaluator is evaluated as evaluations say, when they do") {
  const auto places = [](const std::string& more) {
    TestRun run(with_datasets("{psnr: {type: psnr, real: hq, fake: gen, range: [0, 1], dataset: "
                              "faces}}") +
                more);
    run.train();
    std::vector<std::string> found;
    for (const int64_t step : {2, 4}) {
      for (const auto& [name, number] : numbers_of(run, step).items()) {
        if (name.ends_with("/psnr")) found.push_back(fmt::format("{} {}", step, name));
      }
    }
    return found;
  };
  CHECK(places("") == std::vector<std::string>{"2 faces/psnr", "4 faces/psnr"});
  CHECK(places("evaluations: {mine: {eval_op: faces/eval_op, freq: 4}}\n") ==
        std::vector<std::string>{"4 mine/psnr"});
  CHECK(places("evaluations: {faces: null}\n").empty());
}

TEST_CASE("a dataset that an evaluator cannot measure is named before the first step") {
  const auto refused = [](const std::string& dataset) {
    return message_of([&] {
      TestRun run(
          with_datasets("{p: {type: psnr, real: hq, fake: gen, dataset: " + dataset + "}}"));
    });
  };
  CHECK(refused("town") ==
        "test.yaml:21: eval/evaluators/p/dataset: there is no datasets/town; there are: train, "
        "validation, faces, towns");
  CHECK(
      refused("train").ends_with("is what a training learns from; an evaluation has another name"));
  CHECK(
      refused("{class: ImageFolder}").find("expected the name of one of datasets, such as faces") !=
      std::string::npos);
}

}  // namespace extensible_evaluators_test
}  // namespace stepop
