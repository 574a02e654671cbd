#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "eval_out/write/eval_writer.h"
#include "runtime/tools/report/report.h"
#include "tests/index_range.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace report_data_test {

using nlohmann::json;

const std::string kEvaluation = "eval/2026-11-21T10-00-00_a/";

json data_of(const ScratchFolder& folder, const ReportOptions& options = {}) {
  return json::parse(report_data(RunDirectory::at(folder.path()), options));
}

TEST_CASE(
    "an evaluation is complete when it came to its end, whether its outputs were kept or not") {
  const ScratchFolder folder;
  folder.write("configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  folder.write(kEvaluation + "1/outputs.h5", "");
  folder.write(kEvaluation + "2/outputs.h5.part", "");
  folder.write(kEvaluation + "3/scalars.json", "{\"validation/eval_op/loss\": 1}");
  folder.write(kEvaluation + "4/examples/best.png", "");
  std::vector<bool> complete;
  const json data = data_of(folder);
  for (const auto& row : data["evaluations"]["rows"]) {
    complete.push_back(row["complete"]);
  }
  CHECK((complete == std::vector<bool>{true, false, true, false}));
}

TEST_CASE("numbers of an evaluation are found by the name of its op") {
  const ScratchFolder folder;
  folder.write("configs/train_2026-11-21T10-00-00.yaml",
               "eval_hook: {eval_op: validation/sample_op}\n");
  folder.write(
      "train/metrics.jsonl",
      "{\"step\":5,\"epoch\":1,\"samples\":5,\"time\":1,\"train/evaluator_op/x\":1}\n"
      "{\"step\":5,\"epoch\":1,\"samples\":5,\"time\":1,\"validation/sample_op/fid\":2}\n");
  folder.write(kEvaluation + "5/outputs.h5", "");
  CHECK(data_of(folder)["evaluations"]["rows"][0]["values"] ==
        json{{"validation/sample_op/fid", 2.0}});
}

TEST_CASE("what the runtime measures has the last charts, and legends are plain words") {
  const ScratchFolder folder;
  folder.write("configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  folder.write("train/metrics.jsonl",
               R"({"step": 1, "runtime/optimizer/lr": 1, "runtime/process_mb": 1,)"
               R"( "train/log_op/loss": 1, "train/train_op/loss": 2, "validation/log_op/loss": 3})"
               "\n"
               R"({"step": 2, "validation/eval_op/loss": 4, "train/visuals_op/sharpness": 1})"
               "\n");
  std::string places;
  const json data = data_of(folder);
  for (const auto& curve : data["curves"]) {
    places += fmt::format("{}: {}\n", curve["name"].get<std::string>(),
                          curve["place"].get<std::string>());
  }
  CHECK(places ==
        "train/log_op/loss: training batches\n"
        "train/train_op/loss: training steps\n"
        "validation/log_op/loss: validation batches\n"
        "validation/eval_op/loss: evaluation (validation)\n"
        "train/visuals_op/sharpness: training, visuals\n"
        "runtime/optimizer/lr: optimizer\n"
        "runtime/process_mb: training\n");
}

TEST_CASE("a number that two callbacks report has one chart, which names both") {
  const ScratchFolder folder;
  folder.write("configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  std::string metrics;
  for (const int step : {1, 2}) {
    metrics += fmt::format(
        "{{\"step\": {0}, \"validation/eval_op/accuracy/accuracy\": 0.{0},"
        " \"validation/eval_op/confusion_matrix/accuracy\": 0.{0},"
        " \"validation/eval_op/other/accuracy\": 0.2,"
        " \"validation/eval_op/confusion_matrix/recall\": 0.{0}}}\n",
        step);
  }
  folder.write("train/metrics.jsonl", metrics);
  const json curves = data_of(folder)["curves"];
  REQUIRE(curves.size() == 3);
  CHECK(curves[0]["name"] == "validation/eval_op/accuracy/accuracy");
  CHECK(curves[0]["also"] == json{"validation/eval_op/confusion_matrix/accuracy"});
  CHECK(curves[1]["name"] == "validation/eval_op/other/accuracy");
  CHECK(curves[2]["name"] == "validation/eval_op/confusion_matrix/recall");
}

TEST_CASE("pictures of the worst examples count among all pictures") {
  const ScratchFolder folder;
  folder.write("configs/train_2026-11-21T10-00-00.yaml", "a: 1\n");
  for (int step = 1; step <= 20; ++step) {
    folder.write(fmt::format("train/train/log_op/a_{:07}.png", step), std::string(10'000, 'x'));
  }
  folder.write(kEvaluation + "1/scalars.json", "{}");
  {
    EvalWriter writer(folder.path(kEvaluation + "1/outputs.h5"), 12);
    const std::vector<int64_t> indices = index_range(0, 12);
    const at::Tensor noise = at::randint(256, {12, 3, 100, 100}, at::kByte);  // 30 kB a PNG
    writer.write({.outputs = {{"noise", noise},
                              {"text", std::vector<std::string>(12, std::string(50'000, 'x'))}},
                  .labels = {{"loss", at::arange(12)}}},
                 indices);
    writer.finish();
  }
  const json data = data_of(folder, {.picture_bytes = 150'000});
  size_t base64_bytes = 0;
  for (const auto& frame : data["pictures"][0]["frames"]) {
    base64_bytes += frame["data"].get<std::string>().size();
  }
  CHECK(data["pictures"][0]["frames"].size() >= 7);
  REQUIRE(data["worst"]["examples"].size() == 12);
  size_t shown = 0;
  for (const auto& example : data["worst"]["examples"]) {
    if (!example["pictures"][0].is_null()) {
      ++shown;
      base64_bytes += example["pictures"][0].get<std::string>().size();
    }
    CHECK(example["values"][0].get<std::string>().size() < 1'000);
  }
  CHECK(data["worst"]["examples"][0]["pictures"][0].is_string());
  CHECK(shown == 2);
  CHECK(base64_bytes <= 150'000 / 3 * 4 + 100);
  CHECK(data["notes"].back() ==
        "pictures of the worst examples that were left out, because all together are too large: "
        "10");
}

}  // namespace report_data_test
}  // namespace stepop
