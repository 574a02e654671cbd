#include "eval_out/write/eval_compressed.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/base/random.h"
#include "tests/index_range.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_compressed_test {

constexpr int64_t kBatch = 8;
const EvalWriterOptions kGzip{.compression = EvalCompression::kGzip, .resume = true};

at::Tensor noise(int64_t first, int64_t count, int64_t columns) {
  at::Tensor values = at::empty({count, columns});
  for (int64_t i = 0; i < count; ++i) {
    Random random(static_cast<uint64_t>(first + i));
    auto* bytes = static_cast<unsigned char*>(values[i].mutable_data_ptr());
    for (int64_t j = 0; j < 4 * columns; ++j) {
      bytes[j] = static_cast<unsigned char>(random.below(j % 4 == 3 ? 64 : 256));
    }
  }
  return values;
}

/// Value j of row i of `wide` is 5000 * i + j; the others are what the tests below say.
EvalOutputs outputs_of(int64_t first, int64_t count) {
  const at::Tensor rows = at::arange(first, first + count);
  const at::Tensor wide = rows.mul(5000).unsqueeze(1).add(at::arange(5000));
  std::vector<std::string> texts;
  for (int64_t i = first; i < first + count; ++i) texts.push_back("row " + std::to_string(i));
  return {.outputs = {{"wide", wide.to(at::kInt)},
                      {"deep/flags", wide.slice(1, 0, 300).remainder(3).eq(0)},
                      {"complex", wide.slice(1, 0, 50).to(at::kComplexFloat)},
                      {"half", wide.slice(1, 0, 64).remainder(1000).to(at::kHalf)},
                      {"noise", noise(first, count, 100)},
                      {"few", wide.slice(1, 0, 10).to(at::kFloat)},
                      {"text", texts}},
          .labels = {{"loss", rows.to(at::kFloat)}}};
}

void write_rows(EvalWriter& writer, int64_t until) {
  for (int64_t first = writer.rows(); first < until;) {
    const int64_t count = std::min(kBatch, until - first);
    const std::vector<int64_t> indices = index_range(first, count);
    writer.write(outputs_of(first, count), indices);
    first += count;
  }
}

/// `f` is the file; `check(n)` that its first n rows are right.
const std::string kCheck = R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "r")
def check(n):
    wide = 5000 * np.arange(n)[:, None] + np.arange(5000)
    o = f["outputs"]
    assert (f["index"][:n] == np.arange(n)).all() and (f["labels/loss"][:n] == np.arange(n)).all()
    assert (o["wide"][:n] == wide).all()
    assert (o["deep/flags"][:n] == (wide[:, :300] % 3 == 0)).all()
    assert (o["complex"][:n] == wide[:, :50].astype(np.complex64)).all()
    assert (o["half"][:n] == (wide[:, :64] % 1000).astype(np.float16)).all()
    assert (o["few"][:n] == wide[:, :10]).all()
    assert list(o["text"].asstr()[:n]) == [f"row {i}" for i in range(n)]
)";

TEST_CASE("compressed arrays are what h5py and h5dump read") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  EvalWriter writer(path, 101, {}, kGzip);
  write_rows(writer, 101);
  writer.finish();
  CHECK(run_python(kCheck + R"(
check(101)
print(int(f.attrs["rows"]), bool(f.attrs["complete"]))
for name in ("wide", "deep/flags", "complex", "half", "noise", "few"):
    d = f["outputs"][name]
    print(name, d.dtype, d.shape, d.chunks, d.compression, d.shuffle)
print(f["labels/loss"].chunks, f["index"].chunks)
)",
                   {path}) ==
        "101 True\n"
        "wide int32 (101, 5000) (16, 5000) gzip True\n"
        "deep/flags bool (101, 300) (16, 300) gzip True\n"
        "complex complex64 (101, 50) (16, 50) gzip True\n"
        "half float16 (101, 64) (16, 64) gzip True\n"
        "noise float32 (101, 100) (16, 100) gzip True\n"
        "few float32 (101, 10) None None False\n"
        "None None\n");
  CHECK(run_python(R"(
import subprocess, sys
text = subprocess.run(["h5dump", "-p", "-y", "-w", "80", "-d", "/outputs/wide", sys.argv[1]], capture_output=True,
                      text=True, check=True).stdout
print("PREPROCESSING SHUFFLE" in text, "COMPRESSION DEFLATE { LEVEL 4 }" in text)
print("504997, 504998, 504999\n" in text)
)",
                   {path}) == "True True\nTrue\n");

  const EvalFile file(path);
  const EvalOutputs expected = outputs_of(33, 40);
  for (const char* key : {"wide", "deep/flags", "complex", "half", "noise", "few"}) {
    CAPTURE(key);
    CHECK(file.read(std::string("outputs/") + key, 33, 40)
              .equal(std::get<at::Tensor>(expected.outputs.at(key))));
  }
  CHECK(file.read_texts("outputs/text", 99, 2).back() == "row 100");
}

TEST_CASE("what compresses well makes a small file, what does not hardly a larger one") {
  const ScratchFolder folder;
  const auto size_of = [&](const at::Tensor& values) {
    const std::string path = folder.path("outputs.h5");
    EvalWriter writer(path, 200, {}, kGzip);
    for (int64_t first = 0; first < 200; first += 10) {
      const std::vector<int64_t> indices = index_range(first, 10);
      writer.write({.outputs = {{"x", values}}}, indices);
    }
    writer.finish();
    return std::filesystem::file_size(path);
  };
  const auto raw = static_cast<uintmax_t>(200 * 3000 * 4);
  CHECK(size_of(at::arange(30000, at::kFloat).view({10, 3000})) < raw / 4);
  Random random(5);
  at::Tensor bytes = at::empty({10, 12000}, at::kByte);
  for (int64_t i = 0; i < bytes.numel(); ++i) {
    bytes.mutable_data_ptr<uint8_t>()[i] = static_cast<uint8_t>(random.below(256));
  }
  CHECK(size_of(bytes.view(at::kFloat)) < raw + raw / 50);
  CHECK(size_of(at::zeros({10, 3000})) < raw / 50);
}

TEST_CASE("without finish the rows of full chunks are there, and the next evaluation resumes") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const auto write = [&](int64_t until) {
    EvalWriter writer(path, 101, {}, kGzip);
    write_rows(writer, until);
  };
  const auto rows = [&] { return EvalFile(path + ".part").rows(); };
  write(8);
  CHECK(rows() == 0);  // a chunk has 16
  write(40);
  CHECK(rows() == 32);
  CHECK(run_python(kCheck + "check(32); print(f.attrs['complete'])", {path + ".part"}) ==
        "False\n");
  {
    EvalWriter writer(path, 101, {}, kGzip);
    CHECK(writer.rows() == 32);
  }
  write(72);
  CHECK(rows() == 64);
  write(101);
  CHECK(rows() == 96);
  EvalWriter writer(path, 101, {}, kGzip);
  write_rows(writer, 101);
  writer.finish();
  CHECK(run_python(kCheck + "check(101); print(f.attrs['complete'])", {path}) == "True\n");
}

TEST_CASE("a .part whose rows are all there needs only its name") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  {
    EvalWriter writer(path, 101, {}, kGzip);
    write_rows(writer, 101);
    writer.finish();
  }
  std::filesystem::rename(path, path + ".part");
  EvalWriter writer(path, 101, {}, kGzip);
  CHECK(writer.rows() == 101);
  writer.finish();
  CHECK(run_python(kCheck + "check(101); print(f.attrs['complete'])", {path}) == "True\n");
}

TEST_CASE("chunks are whole batches, or equal parts of one, of at most 1 MB") {
  const auto chunks_of = [](std::vector<int64_t> row_bytes, int64_t batch_size, int64_t rows) {
    std::vector<EvalArray> arrays;
    for (const int64_t bytes : row_bytes) {
      arrays.push_back({"outputs/x", EvalKind::kTensor, at::kByte, {bytes}});
    }
    return rows_of_chunks(arrays, batch_size, rows);
  };
  using Rows = std::vector<int64_t>;
  CHECK((chunks_of({786432}, 64, 1000) == Rows{1}));
  CHECK((chunks_of({196608}, 64, 1000) == Rows{4}));
  CHECK((chunks_of({786432, 2048}, 64, 1000) == Rows{1, 64}));
  CHECK((chunks_of({786432, 2048, 40}, 64, 1000) == Rows{1, 64, 0}));
  CHECK((chunks_of({10000}, 64, 1000) == Rows{64}));
  CHECK((chunks_of({1024}, 64, 10000) == Rows{256}));
  CHECK((chunks_of({1024, 64}, 64, 10000) == Rows{256, 256}));
  CHECK((chunks_of({1024}, 64, 200) == Rows{192}));
  CHECK((chunks_of({1024}, 64, 64) == Rows{64}));
  CHECK((chunks_of({1024}, 1, 10000) == Rows{256}));
  CHECK((chunks_of({300000}, 7, 1000) == Rows{1}));
  CHECK((chunks_of({100000000}, 2, 1000) == Rows{1}));
  CHECK((chunks_of({4, 40, int64_t{5} << 30}, 2, 1000) == Rows{0, 0, 0}));
  CHECK((rows_of_chunks({{"outputs/r", EvalKind::kRagged, at::kByte, {5000}},
                         {"outputs/t", EvalKind::kText, at::kByte, {}}},
                        4, 100) == Rows{0, 0}));
}

}  // namespace eval_compressed_test
}  // namespace stepop
