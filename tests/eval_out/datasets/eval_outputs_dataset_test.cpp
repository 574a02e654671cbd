#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/read/find_evaluations.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/eval_out/datasets/loaded.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace eval_outputs_dataset_test {

/// Rows of the examples 0, 3, 6, 9, 12 in two batches; example i has the logits [i, i + 0.5], the
/// name `n<i>` and i % 4 boxes [i, row].
void write_outputs(const std::string& path, bool finish = true, bool with_clash = false) {
  EvalWriter writer(path, 5);
  for (const std::vector<int64_t>& indices :
       std::vector<std::vector<int64_t>>{{0, 3, 6}, {9, 12}}) {
    const at::Tensor index = at::tensor(indices);
    const at::Tensor i = index.to(at::kFloat).unsqueeze(1);
    std::vector<std::string> names;
    std::vector<at::Tensor> boxes;
    for (const int64_t one : indices) {
      names.push_back("n" + std::to_string(one));
      boxes.push_back(at::full({one % 4, 2}, one, at::kInt).add(at::tensor({0, 1}, at::kInt)));
    }
    EvalOutputs outputs{.outputs = {{"logits", i.add(at::tensor({0.0F, 0.5F}))},
                                    {"deep/name", names},
                                    {"boxes", boxes}},
                        .labels = {{"loss", index.to(at::kFloat).mul(2)}}};
    if (with_clash) outputs.outputs.set("loss", i);
    writer.write(outputs, indices);
  }
  if (finish) writer.finish();
}

std::unique_ptr<Dataset> build(const std::string& yaml) {
  return datasets().build(
      Config(parse_yaml("d: {class: EvalOutputs, " + yaml + "}", {"test.yaml", 0})), "d");
}

Batch batch_of(const Dataset& dataset, const std::vector<int64_t>& indices) {
  std::vector<Random> randoms(indices.size(), Random(1));
  return load_batch(dataset, indices, randoms);
}

/// A CSV of 13 examples, as the dataset that was evaluated.
std::string table(const ScratchFolder& folder, const std::string& columns = "id,colour") {
  std::string text = columns + "\n";
  for (int i = 0; i < 13; ++i) text += std::to_string(100 + i) + ",c" + std::to_string(i) + "\n";
  return "{class: Csv, path: " + folder.write("table.csv", text) + "}";
}

std::string without(std::string text, const std::string& folder) {
  for (size_t at = 0; (at = text.find(folder)) != std::string::npos;) {
    text.erase(at, folder.size() + 1);
  }
  return text;
}

TEST_CASE("outputs are examples: tensors, ragged ones with their lengths, texts") {
  const ScratchFolder folder;
  write_outputs(folder.path("outputs.h5"));
  for (const std::string cache : {"0", "1000000"}) {
    const auto dataset = build("cache_bytes: " + cache + ", path: " + folder.path("outputs.h5"));
    CHECK(dataset->size() == 5);
    const Batch batch = batch_of(*dataset, {3, 1, 0});
    CHECK(batch.tensors().key_list() == "loss, boxes, boxes_lengths, logits, index");
    CHECK((batch.text("deep/name") == std::vector<std::string>{"n9", "n3", "n0"}));
    CHECK(
        at::equal(batch["logits"], at::tensor({9.0F, 9.5F, 3.0F, 3.5F, 0.0F, 0.5F}).view({3, 2})));
    CHECK(at::equal(batch["loss"], at::tensor({18.0F, 6.0F, 0.0F})));
    CHECK(at::equal(batch["index"], at::tensor({3, 1, 0})));
    CHECK(at::equal(batch["boxes_lengths"], at::tensor({1, 3, 0})));
    CHECK(batch["boxes"].dtype() == at::kInt);
    CHECK(at::equal(
        batch["boxes"].to(at::kLong),
        at::tensor({9, 10, 0, 0, 0, 0, 3, 4, 3, 4, 3, 4, 0, 0, 0, 0, 0, 0}).view({3, 3, 2})));
    CHECK(at::equal(dataset->labels("loss"), at::arange(0, 13, 3).mul(2).to(at::kFloat)));
    Random random(1);
    CHECK(dataset->get(1, random).tensors.at("boxes").sizes() == at::IntArrayRef{3, 2});
  }
}

TEST_CASE("a key of a map is the batch's key as it stands, one of a list is without its group") {
  const ScratchFolder folder;
  write_outputs(folder.path("outputs.h5"));
  const auto keys = [&](const std::string& chosen) {
    return batch_of(*build("keys: " + chosen + ", path: " + folder.path("outputs.h5")), {0})
        .tensors()
        .key_list();
  };
  CHECK(keys("{outputs: {logits: outputs/logits}}") == "outputs/logits, index");
  CHECK(keys("{outputs: {logits: logits}}") == "outputs/logits, index");
  CHECK(keys("[outputs/logits]") == "logits, index");
}

TEST_CASE("a row is joined with the example of the dataset that it came from") {
  const ScratchFolder folder;
  write_outputs(folder.path("outputs.h5"));
  const auto dataset =
      build("keys: {teacher: logits, boxes: outputs/boxes}, dataset: " + table(folder) +
            ", path: " + folder.path("outputs.h5"));
  const Batch batch = batch_of(*dataset, {4, 1});
  CHECK(at::equal(batch["teacher"].select(1, 0), at::tensor({12.0F, 3.0F})));
  CHECK(at::equal(batch["id"], at::tensor({112, 103})));
  CHECK((batch.text("colour") == std::vector<std::string>{"c12", "c3"}));
  CHECK(at::equal(batch["index"], at::tensor({4, 1})));
  CHECK(at::equal(dataset->labels("id"), at::tensor({100, 103, 106, 109, 112})));
  Random random(1);
  CHECK(dataset->get(1, random).tensors.at("id").item<int64_t>() == 103);
  const std::vector<Example> examples = {dataset->get(4, random), dataset->get(1, random)};
  const Batch collated = dataset->collate(examples, {4, 1});
  for (const auto& [key, value] : collated.tensors()) CHECK(at::equal(value, batch[key]));
  CHECK(collated.tensors().size() == 4);
  CHECK((collated.texts() == batch.texts()));
}

TEST_CASE(
    "what the joined dataset draws depends on the position alone, with any number of workers") {
  const ScratchFolder folder;
  write_outputs(folder.path("outputs.h5"));
  for (const std::string cache : {"0", "1000000"}) {
    const auto dataset =
        build("cache_bytes: " + cache + ", path: " + folder.path("outputs.h5") +
              ", dataset: {class: Augment, noise: 0.1, dataset: {class: Synthetic, "
              "size: 20, shape: [1, 4, 4]}}");
    const std::string bytes = loaded_bytes(*dataset, 0);
    CHECK((loaded_bytes(*dataset, 1) == bytes));
    CHECK((loaded_bytes(*dataset, 4) == bytes));
  }
}

TEST_CASE("keys that clash are reported with how to rename them") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  write_outputs(path, true, true);
  const auto error = [&](const std::string& more) {
    return without(message_of([&] { build("path: " + path + more); }), folder.path());
  };
  CHECK(error("") ==
        "test.yaml:1: d/path: outputs.h5: labels/loss and outputs/loss would both be \"loss\"; "
        "choose other keys: keys: {loss: labels/loss, other_loss: outputs/loss}");
  CHECK(error(", keys: [loss]") ==
        "test.yaml:1: d/keys/0: outputs.h5: \"loss\" may be outputs/loss or labels/loss; give the "
        "whole name");
  CHECK(error(", keys: [labels/loss, outputs/loss]").find("would both be \"loss\"") !=
        std::string::npos);
  CHECK(error(", keys: [lgits]") ==
        "test.yaml:1: d/keys/0: outputs.h5 has no \"lgits\"; there are: labels/loss, "
        "outputs/boxes, outputs/deep/name, outputs/logits, outputs/loss");
  CHECK(error(", keys: [logits], dataset: " + table(folder, "logits,colour")) ==
        "test.yaml:1: d/dataset: \"logits\" is in the dataset and in outputs.h5; read the outputs "
        "under another key: keys: {output_logits: outputs/logits}");
  CHECK(error(", keys: {colour: logits}, dataset: " + table(folder)) ==
        "test.yaml:1: d/dataset: \"colour\" is in the dataset and in outputs.h5; read the outputs "
        "under another key: keys: {output_logits: outputs/logits}");
}

TEST_CASE("a dataset that is smaller than the one that was evaluated is reported") {
  const ScratchFolder folder;
  write_outputs(folder.path("outputs.h5"));
  const std::string csv = folder.write("small.csv", "id\n1\n2\n3\n4\n");
  CHECK(without(message_of([&] {
                  build("path: " + folder.path("outputs.h5") +
                        ", dataset: {class: Csv, path: " + csv + "}");
                }),
                folder.path()) ==
        "test.yaml:1: d/dataset: outputs.h5: row 2 is example 6 of its dataset; this one has 4");
}

TEST_CASE("an evaluation that did not come to its end is used when one says so") {
  const ScratchFolder folder;
  write_outputs(folder.path("outputs.h5"), false);
  const std::string part = folder.path("outputs.h5.part");
  const auto error = [&](const std::string& path) {
    return without(message_of([&] { build("path: " + path); }), folder.path());
  };
  CHECK(error(part) ==
        "test.yaml:1: d/path: outputs.h5.part: an unfinished evaluation of 5 "
        "rows; allow_incomplete: true takes them");
  CHECK(error(folder.path("outputs.h5")) ==
        "outputs.h5: no such file; outputs.h5.part holds the rows of an unfinished evaluation");
  CHECK(build("allow_incomplete: true, path: " + part)->size() == 5);
  CHECK(build("allow_incomplete: true, path: " + folder.path())->size() == 5);
}

TEST_CASE("of a run the last evaluation that came to its end is taken") {
  const ScratchFolder folder;
  for (const std::string one :
       {"r/eval/2026-11-21T10-00-00_a/9/outputs.h5", "r/eval/2026-11-21T10-00-00_a/100/outputs.h5",
        "r/eval/2026-11-21T12-00-00_a/50/outputs.h5",
        "r/eval/2026-11-21T12-00-00_a/60/outputs.h5.part",
        "cleaned/eval/2026-11-21T10-00-00_a/9/scalars.json",
        "killed/eval/2026-11-21T10-00-00_a/9/outputs.h5.part"}) {
    folder.write(one, "");
  }
  const auto found = [&](const std::string& path) {
    return without(find_outputs(folder / path), folder.path());
  };
  const std::string last = "r/eval/2026-11-21T12-00-00_a/50/outputs.h5";
  CHECK(found("r") == last);
  CHECK(found("r/eval") == last);
  CHECK(found("r/eval/2026-11-21T10-00-00_a") == "r/eval/2026-11-21T10-00-00_a/100/outputs.h5");
  CHECK(found("r/eval/2026-11-21T10-00-00_a/9") == "r/eval/2026-11-21T10-00-00_a/9/outputs.h5");
  const std::string part = "killed/eval/2026-11-21T10-00-00_a/9/outputs.h5.part";
  CHECK(found("killed") == part);
  const auto error = [&](const std::string& path) {
    return without(message_of([&] { found(path); }), folder.path());
  };
  const std::string none =
      ": no outputs in this folder; give the folder of a run that was evaluated, of one of its "
      "evaluations (eval/<time>_<name>/<step>), or an outputs.h5";
  CHECK(error("cleaned") ==
        "cleaned" + none + "; clean_after_callbacks removes outputs after the callbacks");
  const std::string cleaned = "cleaned/eval/2026-11-21T10-00-00_a/9";
  CHECK(error(cleaned) == cleaned + none);
}

TEST_CASE("a damaged file of outputs is reported") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  write_outputs(path);
  const auto error = [&](const std::string& change) {
    run_python("import sys, h5py\nf = h5py.File(sys.argv[1], 'a')\n" + change, {path});
    return without(message_of([&] { build("path: " + path); }), folder.path());
  };
  CHECK(error("f['outputs/boxes/offsets'][2] = 100") ==
        "outputs.h5: outputs/boxes/offsets do not increase from 0 to at most the 6 values");
  CHECK(error("f.attrs['rows'] = 9").find("outputs.h5") != std::string::npos);
  CHECK(error("del f.attrs['format_version']") ==
        "outputs.h5: not a file of evaluation outputs: it has no attribute \"format_version\"");
}

TEST_CASE("a network learns from the outputs of an earlier run") {
  const std::string data = STEPOP_SOURCE_DIR "/configs/data/digits-";
  const auto idx = [&](const std::string& split) {
    return "{class: Idx, images: " + data + split + "-images.idx.gz, labels: " + data + split +
           "-labels.idx.gz}";
  };
  const std::string common =
      "iterator: Classifier\nbatch_size: 32\noptimizer: {class: Adam, lr: 3e-3}\n";
  TestRun teacher(common + "model: {class: LeNet, image_size: [8, 8], padding: [2, 2]}\n" +
                  "num_epochs: 2\ndatasets: {train: " + idx("train") +
                  ", validation: " + idx("test") + "}\n");
  teacher.session.check();
  teacher.train();

  const std::string outputs = "{class: EvalOutputs, path: " + teacher.root() +
                              ", keys: {image: logits, class: outputs/class}}";
  TestRun student(common + "model: {class: MLP, inputs: 10, hidden: [32]}\n" +
                  "num_epochs: 20\nlog_ops: []\ntelemetry: {active: false}\ndatasets: {train: " +
                  outputs + ", validation: " + outputs + "}\n");
  CHECK(student.session.context().dataset("train").size() == 355);
  student.session.check();
  student.train();
  const auto metrics = student.metrics();
  const std::string loss = "validation/eval_op/loss";
  CHECK(metrics.back().at(loss).get<double>() < 0.3 * metrics.front().at(loss).get<double>());
}

}  // namespace eval_outputs_dataset_test
}  // namespace stepop
