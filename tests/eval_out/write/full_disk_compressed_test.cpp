#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/base/random.h"
#include "tests/index_range.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/small_disk.h"

namespace stepop {
namespace full_disk_compressed_test {

namespace fs = std::filesystem;

constexpr int64_t kRows = 72;
constexpr int64_t kBatch = 8;

/// 4096 numbers that hardly become smaller, the same for the same row.
at::Tensor noise(int64_t row) {
  Random random(static_cast<uint64_t>(row));
  at::Tensor values = at::empty({4096}, at::kInt);
  auto* data = values.mutable_data_ptr<int>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] = static_cast<int>(random.below(1 << 20));
  return values;
}

EvalOutputs outputs_of(int64_t first) {
  at::Tensor x = at::empty({kBatch, 4096}, at::kInt);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < kBatch; ++i) {
    x[i].copy_(noise(first + i));
    texts.push_back("row " + std::to_string(first + i));
  }
  return {.outputs = {{"x", x}, {"text", texts}},
          .labels = {{"loss", at::arange(first, first + kBatch, at::kFloat)}}};
}

const EvalWriterOptions kOptions{.queued_batches = 1,
                                 .gather_time = std::chrono::milliseconds(0),
                                 .compression = EvalCompression::kGzip,
                                 .resume = true};

void write_batch(EvalWriter& writer, int64_t first) {
  const std::vector<int64_t> indices = index_range(first, kBatch);
  writer.write(outputs_of(first), indices);
}

void evaluate_to(const std::string& path) {
  EvalWriter writer(path, kRows, {}, kOptions);
  for (int64_t first = writer.rows(); first < kRows; first += kBatch) write_batch(writer, first);
  writer.finish();
}

int64_t check_rows(const std::string& path) {
  const EvalFile file(path);
  const int64_t rows = file.rows();
  for (int64_t i = 0; i < rows; ++i) {
    CHECK(file.read("outputs/x", i, 1)[0].equal(noise(i)));
    CHECK(file.read_texts("outputs/text", i, 1).at(0) == "row " + std::to_string(i));
  }
  return rows;
}

TEST_CASE("a disk that is too small for what compression leaves keeps the rows that were written") {
  for (size_t kilobytes = 64;; kilobytes += 64) {
    bool is_done = false;
    const bool is_tried = on_small_disk(kilobytes << 10, [&](SmallDisk& disk) {
      CAPTURE(kilobytes);
      const std::string path = disk / "outputs.h5";
      const std::string message = message_of([&] { evaluate_to(path); });
      CAPTURE(message);
      is_done = message == "no error";
      if (is_done) return;
      CHECK(message.find(path + ".part: ") != std::string::npos);
      CHECK((message.ends_with(": No space left on device") || message.ends_with("B left")));
      const int64_t rows = fs::exists(path + ".part") ? check_rows(path + ".part") : 0;
      CHECK(rows % 16 == 0);
      disk.resize(4 << 20);
      CHECK(message_of([&] { evaluate_to(path); }) == "no error");  // resumes behind them
      CHECK(check_rows(path) == kRows);
      CHECK(run_python("import sys, h5py; f = h5py.File(sys.argv[1])['outputs/x']; "
                       "print(f.chunks, f[()].shape)",
                       {path}) == "(16, 4096) (72, 4096)\n");
    });
    if (!is_tried) return;
    if (is_done) break;
    REQUIRE(kilobytes < 4000);
  }
}

TEST_CASE("compressed rows that were in the file are there after a disk that filled later") {
  on_small_disk(4 << 20, [&](SmallDisk& disk) {
    const std::string path = disk / "outputs.h5";
    {
      EvalWriter writer(path, kRows, {}, kOptions);
      for (int64_t first = 0; first < 32; first += kBatch) write_batch(writer, first);
    }  // writes all full chunks, however fast the threads are
    CHECK(check_rows(path + ".part") == 32);
    const std::string others = disk.fill();
    const std::string message = message_of([&] { evaluate_to(path); });
    CHECK(message.find(path + ".part: ") != std::string::npos);
    CHECK(message.ends_with(": No space left on device"));
    CHECK(check_rows(path + ".part") >= 32);
    fs::remove(others);
    CHECK(message_of([&] { evaluate_to(path); }) == "no error");
    CHECK(check_rows(path) == kRows);
  });
}

}  // namespace full_disk_compressed_test
}  // namespace stepop
