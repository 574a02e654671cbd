#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "tests/failing_files.h"
#include "tests/index_range.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/small_disk.h"

namespace stepop {
namespace write_full_disk_test {

namespace fs = std::filesystem;

constexpr int64_t kRows = 64;
constexpr int64_t kBatch = 8;

/// Row i: x is [i, i, ..., i], the ragged array has 10 values i, or after the first batch 40; the
/// text is "row i", or after the first batch that and 300 more letters.
EvalOutputs outputs_of(int64_t first) {
  std::vector<at::Tensor> ragged;
  std::vector<std::string> texts;
  for (int64_t i = first; i < first + kBatch; ++i) {
    ragged.push_back(at::full({first > 0 ? 40 : 10}, i));
    texts.push_back("row " + std::to_string(i) + std::string(first > 0 ? 300 : 0, 'x'));
  }
  const at::Tensor rows = at::arange(first, first + kBatch, at::kFloat);
  return {.outputs = {{"x", rows.unsqueeze(1).expand({kBatch, 100})},
                      {"ragged", ragged},
                      {"deep/text", texts}},
          .labels = {{"loss", rows}}};
}

/// A whole evaluation; `between` is called before each batch with its number.
void evaluate_to(const std::string& path, const std::function<void(int64_t)>& between) {
  EvalWriter writer(path, kRows, {{"config", std::string(3000, '#')}, {"global_step", int64_t{7}}},
                    {.queued_batches = 1, .gather_time = std::chrono::milliseconds(0)});
  for (int64_t first = 0; first < kRows; first += kBatch) {
    between(first / kBatch);
    const std::vector<int64_t> indices = index_range(first, kBatch);
    writer.write(outputs_of(first), indices);
  }
  between(kRows / kBatch);
  writer.finish();
}

/// All rows that the file says it has are there and right.
int64_t check_rows(const std::string& path) {
  const EvalFile file(path);
  const int64_t rows = file.rows();
  CHECK(rows % kBatch == 0);
  if (rows == 0) return 0;
  const at::Tensor x = file.read("outputs/x");
  const std::vector<at::Tensor> ragged = file.read_ragged("outputs/ragged", 0, rows);
  const std::vector<std::string> texts = file.read_texts("outputs/deep/text", 0, rows);
  CHECK(file.index().equal(at::arange(rows)));
  CHECK(file.read("labels/loss").equal(at::arange(rows, at::kFloat)));
  for (int64_t i = 0; i < rows; ++i) {
    const auto row = static_cast<size_t>(i);
    CHECK(x[i].eq(i).all().item<bool>());
    CHECK(ragged[row].eq(i).all().item<bool>());
    CHECK(ragged[row].numel() == (i < kBatch ? 10 : 40));
    CHECK(texts[row].starts_with("row " + std::to_string(i)));
    CHECK(texts[row].size() == 4 + std::to_string(i).size() + (i < kBatch ? 0U : 300U));
  }
  return rows;
}

int open_files_below(const std::string& path) {
  int count = 0;
  for (const auto& file : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed_meanwhile;
    const std::string target = fs::read_symlink(file, closed_meanwhile).string();
    if (target.starts_with(path) || target.starts_with("/memfd:stepop")) ++count;
  }
  return count;
}

/// Another process reads the files: this one might look into what the library remembers of them.
void check_with_h5py(const ScratchFolder& parts) {
  CHECK(run_python(R"(
import os, sys, h5py
for name in os.listdir(sys.argv[1]):
    f = h5py.File(sys.argv[1] + "/" + name, "r")
    n = int(f.attrs["rows"])
    assert n % 8 == 0 and not f.attrs["complete"]
    if n == 0: continue
    assert (f["index"][:n] == range(n)).all()
    assert (f["labels/loss"][:n] == range(n)).all()
    assert (f["outputs/x"][:n, 99] == range(n)).all()
    assert f["outputs/ragged/values"][f["outputs/ragged/offsets"][n] - 1] == n - 1
    for i, text in enumerate(f["outputs/deep/text"].asstr()[:n]):
        assert text == f"row {i}" + "x" * (300 if i >= 8 else 0)
print("ok")
)",
                   {parts.path()}) == "ok\n");
}

/// What is left when an evaluation to a disk that was too small has ended with `message`; a .part
/// is copied into `parts`.
void check_harmless(SmallDisk& disk, const std::string& message, const ScratchFolder& parts) {
  const std::string path = disk / "outputs.h5";
  CAPTURE(message);
  CHECK(message.find(path + ".part: ") != std::string::npos);
  CHECK((message.ends_with(": No space left on device") || message.ends_with("B left")));
  CHECK(read_bytes(path) == "old");
  CHECK(read_bytes(disk / "log.txt") == "said before");
  if (fs::exists(path + ".part")) {
    CHECK(check_rows(path + ".part") > 0);  // without rows it does not stay
    fs::copy_file(path + ".part", parts / std::to_string(parts.names().size()));
  }
  CHECK(open_files_below(path) == 0);

  disk.resize(4 << 20);
  CHECK(message_of([&] { evaluate_to(path, [](int64_t) {}); }) == "no error");
  CHECK(check_rows(path) == kRows);
  CHECK_FALSE(fs::exists(path + ".part"));
}

void write_what_was_before(const SmallDisk& disk) {
  write_bytes(disk / "outputs.h5", "old");
  write_bytes(disk / "log.txt", "said before");
}

/// Evaluates on larger and larger disks until one is large enough.
void try_disks() {
  const ScratchFolder parts;
  int too_small = 0;
  for (size_t kilobytes = 12; kilobytes < 3000; kilobytes += 4 + kilobytes / 32) {
    bool is_done = false;
    const bool is_tried = on_small_disk(kilobytes << 10, [&](SmallDisk& disk) {
      CAPTURE(kilobytes);
      write_what_was_before(disk);
      const std::string message =
          message_of([&] { evaluate_to(disk / "outputs.h5", [](int64_t) {}); });
      is_done = message == "no error";
      if (is_done) return;
      ++too_small;
      check_harmless(disk, message, parts);
    });
    if (!is_tried) return;
    if (!is_done) continue;
    CHECK(too_small > 20);
    CHECK(parts.names().size() > 2);
    return check_with_h5py(parts);
  }
  FAIL("no disk was large enough");
}

TEST_CASE("an evaluation on a disk that is too small ends with one message and harms nothing") {
  try_disks();
}

TEST_CASE("so does one on a disk that cannot reserve space") {
  FailingFiles files;
  files.fail_from(FileCall::kAllocate, 1, EOPNOTSUPP);
  try_disks();
}

TEST_CASE("when others fill the disk in the middle, the rows that were written can be read") {
  const ScratchFolder parts;
  int failed = 0;
  for (int64_t full_at = 0; full_at <= kRows / kBatch; ++full_at) {
    const bool is_tried = on_small_disk(1 << 20, [&](SmallDisk& disk) {
      CAPTURE(full_at);
      write_what_was_before(disk);
      const std::string message = message_of([&] {
        evaluate_to(disk / "outputs.h5", [&](int64_t batch) {
          if (batch == full_at) disk.fill();
        });
      });
      // The last batches may have their space already.
      if (message == "no error") return;
      ++failed;
      check_harmless(disk, message, parts);
    });
    if (!is_tried) return;
  }
  CHECK(failed > 0);
  check_with_h5py(parts);
}

TEST_CASE("an evaluation whose space is reserved does not mind a full disk") {
  on_small_disk(1 << 20, [](SmallDisk& disk) {
    const std::string path = disk / "outputs.h5";
    EvalWriter writer(path, 100, {},
                      {.queued_batches = 1, .gather_time = std::chrono::milliseconds(0)});
    for (int64_t row = 0; row < 100; ++row) {
      writer.write({.outputs = {{"x", at::full({1, 1000}, row)}}}, std::vector<int64_t>{row});
      if (row == 5) disk.fill();
    }
    writer.finish();
    CHECK(EvalFile(path).read("outputs/x").select(1, 999).equal(at::arange(100)));
  });
}

TEST_CASE(
    "whichever call for an evaluation's file fails, the old file or a whole new one is there") {
  const ScratchFolder folder;
  const std::string path = folder / "outputs.h5";
  int tried = 0;
  for (int number = 1;; ++number) {
    fs::remove(path);
    write_bytes(path, "old");
    std::string message;
    {
      FailingFiles files;
      files.fail(FileCall::kAny, number, ENOSPC);
      message = message_of([&] { evaluate_to(path, [](int64_t) {}); });
      if (!files.has_failed()) break;
    }
    ++tried;
    CAPTURE(number);
    if (read_bytes(path) == "old") {
      CHECK(message.find(path + ".part") != std::string::npos);
      CHECK(message.ends_with(": No space left on device"));
      if (fs::exists(path + ".part")) check_rows(path + ".part");
    } else {
      CHECK(check_rows(path) == kRows);
    }
    fs::remove(path + ".part");
  }
  CHECK(tried > 12);  // without closes whose failure nobody could act on
}

TEST_CASE("a file is no longer than what HDF5 has in it") {
  const ScratchFolder folder;
  const std::string path = folder / "outputs.h5";
  FailingFiles files;
  evaluate_to(path, [](int64_t) {});
  CHECK(files.count(FileCall::kAllocate) > 2);
  const auto size = fs::file_size(path);
  CHECK(run_python("import sys, h5py; f = h5py.File(sys.argv[1]); print(f.id.get_filesize())",
                   {path}) == std::to_string(size) + "\n");
}

}  // namespace write_full_disk_test
}  // namespace stepop
