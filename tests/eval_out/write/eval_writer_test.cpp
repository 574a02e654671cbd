#include "eval_out/write/eval_writer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "eval_out/hdf5/hdf5.h"
#include "tests/index_range.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_writer_test {

/// Python that opens the file as `f`, with a function that prints an array's type, shape and
/// values.
const std::string kOpen = R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "r")
def show(name):
    print(name, f[name].dtype, f[name].shape, f[name][()].tolist())
)";

TEST_CASE("every type of tensor is what h5py expects of it") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 2);
  EvalOutputs outputs;
  for (const at::ScalarType type :
       {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kUInt16, at::kUInt32,
        at::kUInt64, at::kHalf, at::kBFloat16, at::kFloat8_e5m2, at::kFloat, at::kDouble, at::kBool,
        at::kComplexFloat, at::kComplexDouble}) {
    outputs.outputs.set(c10::toString(type), at::tensor({1.5, 0.0}).to(type));
  }
  outputs.outputs.set(
      "conjugate",
      at::tensor({1.0, 3.0}).to(at::kComplexFloat).mul(c10::complex<double>(0, 1)).conj());
  writer.write(outputs, index_range(0, 2));
  writer.finish();
  CHECK(run_python(kOpen + "for name in sorted(f['outputs']): show('outputs/' + name)",
                   {folder.path("outputs.h5")}) ==
        "outputs/BFloat16 float32 (2,) [1.5, 0.0]\n"
        "outputs/Bool bool (2,) [True, False]\n"
        "outputs/Byte uint8 (2,) [1, 0]\n"
        "outputs/Char int8 (2,) [1, 0]\n"
        "outputs/ComplexDouble complex128 (2,) [(1.5+0j), 0j]\n"
        "outputs/ComplexFloat complex64 (2,) [(1.5+0j), 0j]\n"
        "outputs/Double float64 (2,) [1.5, 0.0]\n"
        "outputs/Float float32 (2,) [1.5, 0.0]\n"
        "outputs/Float8_e5m2 float32 (2,) [1.5, 0.0]\n"
        "outputs/Half float16 (2,) [1.5, 0.0]\n"
        "outputs/Int int32 (2,) [1, 0]\n"
        "outputs/Long int64 (2,) [1, 0]\n"
        "outputs/Short int16 (2,) [1, 0]\n"
        "outputs/UInt16 uint16 (2,) [1, 0]\n"
        "outputs/UInt32 uint32 (2,) [1, 0]\n"
        "outputs/UInt64 uint64 (2,) [1, 0]\n"
        "outputs/conjugate complex64 (2,) [-1j, -3j]\n");
}

TEST_CASE("nested keys, labels, text and ragged values lie where the format says") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 5);
  // Three batches: two rows, two rows in which all ragged values are, one row.
  const std::vector<std::vector<std::string>> texts{{"", "Ähre"}, {"x", "𝄞"}, {"end"}};
  const std::vector<std::vector<int64_t>> lengths{{0, 0}, {3, 1}, {0}};
  int64_t row = 0;
  for (size_t batch = 0; batch < texts.size(); ++batch) {
    const auto count = static_cast<int64_t>(texts[batch].size());
    std::vector<at::Tensor> ragged;
    for (const int64_t length : lengths[batch]) {
      ragged.push_back(at::arange(2 * length, at::kInt).view({length, 2}));
    }
    const at::Tensor rows = at::arange(row, row + count, at::kFloat);
    writer.write({.outputs = {{"encoder/mean", at::ones({2, count}).mul(rows).t()},
                              {"encoder/deep/texts", texts[batch]},
                              {"boxes", ragged},
                              {"empty", at::ones({count, 0})}},
                  .labels = {{"loss", rows}}},
                 index_range(10 + row, count));
    row += count;
  }
  writer.finish();
  CHECK(run_python(kOpen + R"(
names = []
f.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
print(sorted(names))
for name in ["index", "labels/loss", "outputs/encoder/mean", "outputs/empty"]: show(name)
for name in ["outputs/boxes/values", "outputs/boxes/offsets"]: show(name)
print(f["outputs/boxes"].attrs["ragged"], f["outputs/encoder/deep/texts"].asstr()[()].tolist())
print(h5py.check_string_dtype(f["outputs/encoder/deep/texts"].dtype))
)",
                   {folder.path("outputs.h5")}) ==
        "['index', 'labels/loss', 'outputs/boxes/offsets', 'outputs/boxes/values', "
        "'outputs/empty', 'outputs/encoder/deep/texts', 'outputs/encoder/mean']\n"
        "index int64 (5,) [10, 11, 12, 13, 14]\n"
        "labels/loss float32 (5,) [0.0, 1.0, 2.0, 3.0, 4.0]\n"
        "outputs/encoder/mean float32 (5, 2) [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0], "
        "[4.0, 4.0]]\n"
        "outputs/empty float32 (5, 0) [[], [], [], [], []]\n"
        "outputs/boxes/values int32 (4, 2) [[0, 1], [2, 3], [4, 5], [0, 1]]\n"
        "outputs/boxes/offsets int64 (6,) [0, 0, 0, 3, 4, 4]\n"
        "True ['', 'Ähre', 'x', '𝄞', 'end']\n"
        "string_info(encoding='utf-8', length=None)\n");
}

TEST_CASE("the attributes are those of the caller and the writer's own") {
  const ScratchFolder folder;
  const std::string config = "model: LeNet\n" + std::string(100'000, '#');
  EvalWriter writer(folder.path("outputs.h5"), 1,
                    {{"global_step", int64_t{230}},
                     {"split", "validation"},
                     {"config", config},
                     {"epoch", 2.5},
                     {"dirty", true},
                     {"git", ""}});
  writer.write({.labels = {{"loss", at::ones({1})}}}, index_range(0, 1));
  writer.finish();
  CHECK(run_python(kOpen + R"(
for name in sorted(f.attrs):
    value = f.attrs[name]
    print(name, type(value).__name__, repr(value) if name != "config" else len(value))
)",
                   {folder.path("outputs.h5")}) ==
        "complete bool np.True_\n"
        "config str 100013\n"
        "dirty bool np.True_\n"
        "epoch float64 np.float64(2.5)\n"
        "format_version int64 np.int64(1)\n"
        "git str ''\n"
        "global_step int64 np.int64(230)\n"
        "rows int64 np.int64(1)\n"
        "split str 'validation'\n");
}

TEST_CASE("an evaluation without rows is a whole file") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 0);
  writer.write({.labels = {{"loss", at::ones({0})}}}, {});
  writer.finish();
  CHECK(run_python(kOpen + "print(f.attrs['complete'], f['index'].shape, list(f))",
                   {folder.path("outputs.h5")}) == "True (0,) ['index']\n");
}

TEST_CASE("the file that was there before stays until the new one is finished") {
  const ScratchFolder folder;
  const std::string path = folder.write("outputs.h5", "old");
  EvalWriter writer(path, 1);
  writer.write({.labels = {{"loss", at::ones({1})}}}, index_range(0, 1));
  CHECK(std::filesystem::file_size(path) == 3);
  writer.finish();
  CHECK(std::filesystem::file_size(path) > 3);
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_CASE("a batch may be changed once write has returned") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 20);
  at::Tensor loss = at::zeros({1});
  for (int64_t row = 0; row < 20; ++row) {
    writer.write({.labels = {{"loss", loss}}}, index_range(row, 1));
    loss.add_(1);
  }
  writer.finish();
  CHECK(run_python(kOpen + "print((f['labels/loss'][()] == np.arange(20)).all())",
                   {folder.path("outputs.h5")}) == "True\n");
}

TEST_CASE("tensors in a graph and views of others are stored by their values") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 2);
  const at::Tensor weight = at::ones({2, 3}).requires_grad_();
  writer.write({.outputs = {{"product", weight.mul(2)},
                            {"expanded", at::ones({1}).expand({2, 2})},
                            {"flipped", at::arange(4).view({2, 2}).t().slice(0, 0, 2)}}},
               index_range(0, 2));
  writer.finish();
  CHECK(run_python(kOpen + "for name in f['outputs']: show('outputs/' + name)",
                   {folder.path("outputs.h5")}) ==
        "outputs/expanded float32 (2, 2) [[1.0, 1.0], [1.0, 1.0]]\n"
        "outputs/flipped int64 (2, 2) [[0, 2], [1, 3]]\n"
        "outputs/product float32 (2, 3) [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]\n");
}

TEST_CASE("no more than the queued batches wait for the disk") {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 50, {},
                    {.queued_batches = 2, .gather_time = std::chrono::milliseconds(0)});
  std::atomic<int> accepted = 0;
  std::thread evaluation;
  {
    const Hdf5Lock disk_is_busy;
    evaluation = std::thread([&] {
      for (int64_t row = 0; row < 50; ++row) {
        writer.write({.labels = {{"loss", at::ones({1})}}}, index_range(row, 1));
        ++accepted;
      }
    });
    // Two wait, and one may be in the hands of the thread that writes.
    while (accepted < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the time to go too far
    CHECK(accepted <= 3);
  }
  evaluation.join();
  CHECK(accepted == 50);
  writer.finish();
}

}  // namespace eval_writer_test
}  // namespace stepop
