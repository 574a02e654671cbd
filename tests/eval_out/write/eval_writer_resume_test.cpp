// What is left of an evaluation that did not come to its end, and how the next one resumes it.

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/system/file_calls.h"
#include "tests/failing_files.h"
#include "tests/index_range.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_writer_resume_test {

/// Python that opens the file as `f`.
const std::string kOpen = R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "r")
)";

TEST_CASE("without finish the .part stays, readable and not complete") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  {
    EvalWriter writer(path, 100);
    for (int64_t row = 0; row < 30; row += 10) {
      writer.write({.labels = {{"loss", at::arange(row, row + 10)}}}, index_range(row, 10));
    }
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(run_python(kOpen + R"(
n = f.attrs["rows"]
print(n, f.attrs["complete"], f["labels/loss"].shape, int(f["labels/loss"][:n].sum()))
)",
                   {path + ".part"}) == "30 False (100,) 435\n");
}

/// Rows `first` to `first + 10` of outputs of every kind.
EvalOutputs some_outputs(int64_t first) {
  std::vector<at::Tensor> ragged;
  std::vector<std::string> texts;
  for (int64_t row = first; row < first + 10; ++row) {
    ragged.push_back(at::full({row % 7 + (row < 10 ? 0 : 50), 2}, row, at::kBFloat16));
    texts.push_back(std::string(static_cast<size_t>(row * 31 % 400), 'x') + std::to_string(row));
  }
  return {.outputs = {{"x", at::arange(first, first + 10)}, {"deep/r", ragged}, {"text", texts}},
          .labels = {{"ok", at::arange(first, first + 10).remainder(3).eq(0)}}};
}

TEST_CASE("each row knows its row in the file of the dataset, also after a stop") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  EvalWriterOptions options{.resume = true, .dataset_size = 20};
  options.source_rows = SourceRows{at::arange(20).mul(3).add(1), 70};
  EvalWriter(path, 20, {}, options).write(some_outputs(0), index_range(0, 10));
  EvalWriter writer(path, 20, {}, options);
  CHECK(writer.rows() == 10);
  writer.write(some_outputs(10), index_range(10, 10));
  writer.finish();
  CHECK(run_python(kOpen + R"(
print(f["index"].attrs["count"], f["source_index"].attrs["count"])
print((f["source_index"][()] == np.arange(20) * 3 + 1).all(), f["source_index"].dtype)
)",
                   {path}) == "20 70\nTrue int64\n");
}

/// Looks at what becomes a .part before it has its name.
class BeforeRename : public FileCalls {
 public:
  int rename(const char* from, const char* to) override {
    if (std::string(to).ends_with(".part")) {
      was_there = was_there || std::filesystem::exists(to);
      seen = read_bytes(from);
    }
    return FileCalls::rename(from, to);
  }

  bool was_there = false;
  std::string seen;
};

TEST_CASE("a .part has its name when it can be opened, and not before") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  BeforeRename calls;
  {
    const FileCallsOverride override(calls);
    folder.write("outputs.h5.part", "");          // what a kill left
    folder.write("outputs.h5.part.tmp", "half");  // so did it here
    EvalWriter writer(path, 100);
    CHECK(folder.names() == std::vector<std::string>{"outputs.h5.part.tmp"});
    CHECK(calls.seen.empty());
    for (int64_t row = 0; row < 50; row += 10)
      writer.write(some_outputs(row), index_range(row, 10));
  }
  CHECK(folder.names() == std::vector<std::string>{"outputs.h5.part"});
  CHECK_FALSE(calls.was_there);
  const EvalFile file(folder.write("copy.h5", calls.seen));
  CHECK(file.rows() == 0);
  CHECK(file.index_length() == 100);
  CHECK(file.arrays().size() == 4);  // all of them
}

TEST_CASE("a file that cannot get its name leaves nothing behind") {
  const ScratchFolder folder;
  FailingFiles files;
  files.fail(FileCall::kRename, 1, EIO);
  CHECK(message_of([&] {
          EvalWriter writer(folder.path("outputs.h5"), 10);
          writer.write(some_outputs(0), index_range(0, 10));
          writer.finish();
        }).ends_with("cannot create " + folder.path("outputs.h5.part") + ": Input/output error"));
  CHECK(folder.names().empty());
}

TEST_CASE("an evaluation that was cut short is resumed, and ends as one that was not") {
  const ScratchFolder folder;
  const OrderedMap<Attribute> about = {{"global_step", int64_t{7}}, {"git", std::string("none")}};
  const auto write = [&](const std::string& path, int64_t until) {
    EvalWriter writer(path, 60, about, {.resume = true});
    for (int64_t row = writer.rows(); row < until; row += 10) {
      writer.write(some_outputs(row), index_range(row, 10));
    }
    if (until == 60) writer.finish();
  };
  const std::string whole = folder.path("whole.h5");
  write(whole, 60);
  const std::string path = folder.path("outputs.h5");
  for (const int64_t until : {0, 10, 30, 60}) write(path, until);
  CHECK(run_python(kOpen + R"(
g = h5py.File(sys.argv[2], "r")
print(sorted(f.attrs) == sorted(g.attrs) and all(f.attrs[a] == g.attrs[a] for a in f.attrs))
names = []
f.visititems(lambda name, o: names.append(name) if isinstance(o, h5py.Dataset) else None)
print(len(names), all((f[name][()] == g[name][()]).all() for name in names))
)",
                   {path, whole}) == "True\n6 True\n");
}

TEST_CASE("what belongs to another evaluation, or is none, is replaced") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const auto rows_of = [&](int64_t rows, const OrderedMap<Attribute>& about, bool resume) {
    return EvalWriter(path, rows, about, {.resume = resume}).rows();
  };
  const auto leave_ten_rows = [&] {
    EvalWriter writer(path, 60, {{"git", std::string("a")}});
    writer.write(some_outputs(0), index_range(0, 10));
  };
  leave_ten_rows();
  CHECK(rows_of(60, {{"git", std::string("a")}}, true) == 10);
  CHECK(rows_of(60, {{"git", std::string("a")}}, false) == 0);
  leave_ten_rows();
  CHECK(rows_of(60, {{"git", std::string("b")}}, true) == 0);
  leave_ten_rows();
  CHECK(rows_of(61, {{"git", std::string("a")}}, true) == 0);
  leave_ten_rows();
  std::filesystem::resize_file(path + ".part", 900);
  CHECK(rows_of(60, {{"git", std::string("a")}}, true) == 0);
  folder.write("outputs.h5.part", "no HDF5");
  CHECK(rows_of(60, {{"git", std::string("a")}}, true) == 0);
}

TEST_CASE("outputs that resume a file must be like those that are there") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  { EvalWriter(path, 20, {}, {}).write(some_outputs(0), index_range(0, 10)); }
  EvalWriter writer(path, 20, {}, {.resume = true});
  CHECK(message_of([&] {
          writer.write({.labels = {{"ok", at::zeros({10}, at::kBool)}}}, index_range(10, 10));
        }) ==
        "eval_op: outputs/deep/r is missing in rows 10 to 19; the first batch had it; 10 "
        "rows are in " +
            path +
            ".part, which is resumed: it is damaged, or of another eval_op: remove it to "
            "start again");
  CHECK(message_of([&] {
          writer.write(some_outputs(10), index_range(9, 10));
        }).find("example 9 comes after example 9") != std::string::npos);
}

}  // namespace eval_writer_resume_test
}  // namespace stepop
