#include "eval_out/read/eval_reader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "eval_out/write/eval_writer.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_reader_test {

/// A file as another program writes it, by the format alone.
const std::string kWrite = R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "w")
f["outputs/logits"] = np.arange(12, dtype=">f4").reshape(4, 3)
f["outputs/mask"] = np.array([True, False, True, True])
f["outputs/half"] = np.array([0.5, -2, 0, 1], dtype=np.float16)
f["outputs/wave"] = np.array([1 + 2j, 0, 0, 0], dtype=np.complex64)
f["outputs/deep/name"] = ["a", "", "ä", "d"]
f["outputs/boxes/values"] = np.arange(10).reshape(5, 2)
f["outputs/boxes/offsets"] = [0, 2, 2, 4, 5]
f["outputs/boxes"].attrs["ragged"] = True
f["labels/loss"] = [1.0, 2.0, 3.0, 0.0]
f["index"] = [3, 4, 7, 0]
f.attrs.update(format_version=int(sys.argv[2]), rows=3, complete=False, split="validation",
               fixed=np.bytes_(b"fixed"), epoch=2.5, list=[1, 2])
)";

TEST_CASE("a file that h5py wrote is read array by array") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  run_python(kWrite, {path, "1"});
  const EvalFile file(path);
  CHECK(file.rows() == 3);
  CHECK_FALSE(file.complete());
  CHECK(file.keys() == std::vector<std::string>{"labels/loss", "outputs/boxes", "outputs/deep/name",
                                                "outputs/half", "outputs/logits", "outputs/mask",
                                                "outputs/wave"});
  CHECK(at::equal(file.read("outputs/logits", 1, 2), at::arange(3, 9, at::kFloat).view({2, 3})));
  CHECK(file.array("outputs/logits").shape == std::vector<int64_t>{3});
  CHECK(file.read("labels/loss").sum().item<double>() == 6.0);
  CHECK(file.read("outputs/mask").dtype() == at::kBool);
  CHECK(file.read("outputs/mask").sum().item<int64_t>() == 2);
  CHECK(file.read("outputs/half", 1, 1).item<double>() == -2.0);
  CHECK(file.read("outputs/wave", 0, 1).item<c10::complex<double>>() == c10::complex<double>(1, 2));
  CHECK(file.read("outputs/logits", 3, 0).sizes() == at::IntArrayRef{0, 3});
  CHECK(file.read_texts("outputs/deep/name", 0, 3) == std::vector<std::string>{"a", "", "ä"});
  const auto boxes = file.read_ragged("outputs/boxes", 0, 3);
  CHECK(boxes[1].sizes() == at::IntArrayRef{0, 2});
  CHECK(at::equal(boxes[2], at::arange(4, 8).view({2, 2})));
  CHECK(at::equal(file.read_ragged("outputs/boxes", 2, 1)[0], boxes[2]));
  CHECK(file.index().sum().item<int64_t>() == 14);
  CHECK(std::get<std::string>(file.attributes().at("split")) == "validation");
  CHECK(std::get<std::string>(file.attributes().at("fixed")) == "fixed");
  CHECK(std::get<double>(file.attributes().at("epoch")) == 2.5);
  CHECK_FALSE(file.attributes().contains("list"));
}

TEST_CASE("blocks are of about 8 MB, and of one row at least") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 1);
  writer.write(
      {.outputs = {{"image", at::ones({1, 3, 1000, 1000})}}, .labels = {{"loss", at::ones({1})}}},
      std::vector<int64_t>{0});
  writer.finish();
  const EvalFile file(folder.path("outputs.h5"));
  CHECK(file.rows_per_block("outputs/image") == 1);
  CHECK(file.rows_per_block("labels/loss") == 2'000'000);
}

TEST_CASE("wrong keys and rows are named with those that there are") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  run_python(kWrite, {path, "1"});
  const EvalFile file(path);
  CHECK(message_of([&] { file.read("outputs/logit"); }) ==
        path +
            ": no \"outputs/logit\"; there are: labels/loss, outputs/boxes, outputs/deep/name, "
            "outputs/half, outputs/logits, outputs/mask, outputs/wave");
  CHECK(message_of([&] { file.read("labels/loss", 2, 2); }) ==
        path + ": labels/loss: asked for 2 rows from row 2 on, it has 3");
  CHECK(message_of([&] { file.read("labels/loss", -1, 1); }) ==
        path + ": labels/loss: asked for 1 row from row -1 on, it has 3");
  CHECK(message_of([&] { file.read("outputs/boxes"); }) ==
        path + ": outputs/boxes is ragged, not a tensor");
  CHECK(message_of([&] { file.read_texts("outputs/logits", 0, 1); }) ==
        path + ": outputs/logits is a tensor, not text");
}

TEST_CASE("what is no file of evaluation outputs is refused with the reason") {
  const ScratchFolder folder;
  const auto open = [](const std::string& path) {
    return message_of([&] { EvalFile file(path); });
  };
  const std::string path = folder.path("outputs.h5");
  CHECK(open(path) == path + ": no such file");
  folder.write("outputs.h5.part", "");
  CHECK(open(path) ==
        path + ": no such file; " + path + ".part holds the rows of an unfinished evaluation");
  CHECK(open(folder.write("text.h5", "hello")) ==
        "cannot read " + folder.path("text.h5") + ": it is not an HDF5 file");
  CHECK(open(folder.path()) == "cannot read " + folder.path() + ": Is a directory");

  run_python(kWrite, {path, "1"});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK(open(path) == "cannot read " + path + ": the file is cut short");

  run_python(kWrite, {path, "2"});
  CHECK(open(path) == path + ": format 2 is newer than this program, which reads format 1");
  run_python("import sys, h5py; h5py.File(sys.argv[1], 'w')['x'] = [1]", {path});
  CHECK(open(path) ==
        path + ": not a file of evaluation outputs: it has no attribute \"format_version\"");
}

TEST_CASE("several threads read one file") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 1000);
  std::vector<int64_t> indices(1000);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
  writer.write({.labels = {{"loss", at::arange(1000)}}}, indices);
  writer.finish();
  const EvalFile file(folder.path("outputs.h5"));
  std::vector<std::thread> threads;
  std::vector<int64_t> sums(4);
  for (int64_t& sum : sums) {
    threads.emplace_back([&] {
      for (int64_t row = 0; row < 1000; ++row) {
        sum += file.read("labels/loss", row, 1).item<int64_t>();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(sums == std::vector<int64_t>(4, 499'500));
}

}  // namespace eval_reader_test
}  // namespace stepop
