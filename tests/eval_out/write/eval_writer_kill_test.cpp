#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "tests/index_range.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_writer_kill_test {

constexpr int64_t kBatch = 16;
constexpr const char* kPathVariable = "STEPOP_TEST_WRITE_TO";
constexpr const char* kReadyVariable = "STEPOP_TEST_READY_AFTER";
constexpr const char* kGzipVariable = "STEPOP_TEST_GZIP";
constexpr const char* kGatherVariable = "STEPOP_TEST_GATHER";

/// Without compression, or with one array of rows that are large enough for it, in chunks of 64.
struct Kind {
  bool is_gzip = false;
  bool gathers = false;

  int64_t rows() const { return is_gzip ? 40'000 : 1'000'000; }
  EvalWriterOptions options() const {
    return {.gather_time = std::chrono::milliseconds(gathers ? 20 : 0),
            .compression = is_gzip ? EvalCompression::kGzip : EvalCompression::kNone,
            .resume = true};
  }
};

/// Row i: x is [i, i], a text is "row i", the ragged array has i % 5 (after the first batch, to
/// make it grow, 40 + i % 5) values i; wide, if there, has i * j % 1021.
void write_batch(EvalWriter& writer, int64_t first, Kind kind) {
  const std::vector<int64_t> indices = index_range(first, kBatch);
  std::vector<at::Tensor> ragged;
  std::vector<std::string> texts;
  for (const int64_t i : indices) {
    ragged.push_back(at::full({first > 0 ? 40 + i % 5 : 0}, i));
    texts.push_back("row " + std::to_string(i));
  }
  const at::Tensor rows = at::arange(first, first + kBatch, at::kFloat);
  EvalOutputs outputs{.outputs = {{"deep/x", rows.unsqueeze(1).expand({kBatch, 2})},
                                  {"ragged", ragged},
                                  {"text", texts}},
                      .labels = {{"loss", rows}}};
  if (kind.is_gzip) {
    const at::Tensor i = at::arange(first, first + kBatch).unsqueeze(1);
    outputs.outputs.set("wide", i.mul(at::arange(1024)).remainder(1021).to(at::kFloat));
  }
  writer.write(outputs, indices);
}

TEST_CASE("(child) writes until it is killed" * doctest::skip()) {
  const char* path = std::getenv(kPathVariable);
  const char* ready = std::getenv(kReadyVariable);
  if (path == nullptr || ready == nullptr) return;  // somebody runs skipped tests as well
  const int64_t ready_row = std::atoi(ready) * kBatch;
  const Kind kind{.is_gzip = std::getenv(kGzipVariable) != nullptr,
                  .gathers = std::getenv(kGatherVariable) != nullptr};
  EvalWriter writer(path, kind.rows(), {}, kind.options());
  for (int64_t first = 0; first < kind.rows(); first += kBatch) {
    write_batch(writer, first, kind);
    if (first == ready_row) CHECK(::write(STDERR_FILENO, "+", 1) == 1);
  }
}

/// Starts this program again, to write to `path`, waits until `ready` batches are accepted and
/// `microseconds` longer, and kills it.
void kill_a_writer(const std::string& path, Kind kind, int ready, int microseconds) {
  if (kind.is_gzip) ::setenv(kGzipVariable, "", 1);
  if (kind.gathers) ::setenv(kGatherVariable, "", 1);
  ::setenv(kPathVariable, path.c_str(), 1);
  ::setenv(kReadyVariable, std::to_string(ready).c_str(), 1);
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  std::array<std::string, 3> words{"stepop_tests", "--no-skip",
                                   "--test-case=(child) writes until*"};
  std::array<char*, 4> argv{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  char answer = 0;
  CHECK(::read(pipe[0], &answer, 1) == 1);
  CHECK(answer == '+');
  ::usleep(static_cast<useconds_t>(microseconds));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  ::close(pipe[0]);
  ::unsetenv(kPathVariable);
  ::unsetenv(kReadyVariable);
  ::unsetenv(kGzipVariable);
  ::unsetenv(kGatherVariable);
}

const std::string kCheck = R"(
import sys, h5py, numpy as np
for path, ready in zip(sys.argv[1::2], sys.argv[2::2]):
    f = h5py.File(path, "r")
    n = int(f.attrs["rows"])
    is_gzip = "outputs/wide" in f
    step = 64 if is_gzip else 16
    # Three batches wait and one is being written; two chunks for each of four threads, and one.
    late = 64 + (9 * 64 if is_gzip else 0)
    assert n >= int(ready) * 16 - late and n % step == 0, n
    assert not f.attrs["complete"]
    if n == 0: continue
    rows = np.arange(n)
    assert (f["index"][:n] == rows).all()
    assert (f["labels/loss"][:n] == rows).all()
    if is_gzip:
        wide = f["outputs/wide"]
        whole = wide[()]  # with those that nobody wrote
        assert wide.chunks == (64, 1024) and len(whole) == 40000
        assert (whole[:n] == rows[:, None] * np.arange(1024) % 1021).all()
        assert (whole[n + 40 * 64:] == 0).all()
    N = len(f["index"])
    assert N == (40000 if is_gzip else 1000000)
    assert f["outputs/deep/x"].shape == (N, 2)
    assert f["outputs/deep/x"][()].shape == (N, 2)  # the whole array can be read
    assert (f["outputs/deep/x"][:n] == rows[:, None]).all()
    text = f["outputs/text"].asstr()[:n]
    assert all(text[i] == f"row {i}" for i in range(n))
    offsets = f["outputs/ragged/offsets"][:n + 1]
    lengths = np.where(rows < 16, 0, 40 + rows % 5)
    assert (np.diff(offsets) == lengths).all() and offsets[0] == 0
    values = f["outputs/ragged/values"][:offsets[-1]]
    assert (values == np.repeat(rows, lengths)).all()
    f.close()
print("ok")
)";

void check_last_row(const std::string& path) {
  const EvalFile file(path + ".part");
  CHECK_FALSE(file.complete());
  if (file.rows() == 0) return;
  const int64_t last = file.rows() - 1;
  CHECK(file.read("outputs/deep/x", last, 1).sum().item<double>() ==
        2.0 * static_cast<double>(last));
  CHECK(file.read_texts("outputs/text", last, 1).at(0) == "row " + std::to_string(last));
  const int64_t length = last < kBatch ? 0 : 40 + last % 5;
  CHECK(file.read_ragged("outputs/ragged", last, 1).at(0).size(0) == length);
}

/// Writes twelve more batches behind what was left.
void resume(const std::string& path, Kind kind) {
  const bool is_there = std::filesystem::exists(path + ".part");
  const int64_t rows = is_there ? EvalFile(path + ".part").rows() : 0;
  {
    EvalWriter writer(path, kind.rows(), {}, kind.options());
    REQUIRE(writer.rows() == rows);
    for (int i = 0; i < 12; ++i) write_batch(writer, rows + i * kBatch, kind);
  }
  CHECK(EvalFile(path + ".part").rows() == rows + 12 * kBatch);
  check_last_row(path);
}

/// Kills one writer after another, and lets h5py read what they left.
void check_kills(Kind kind, int ready, int longest_wait) {
  const char* more = std::getenv("STEPOP_TEST_KILLS");
  const int kills = more == nullptr ? 3 : std::atoi(more);
  for (int i = 0; i < kills; ++i) {
    const ScratchFolder left;
    const std::string path = left.path("outputs.h5");
    kill_a_writer(path, kind, ready, i * 7919 % longest_wait);
    // The file gets its name once all arrays are there; before that, nothing is left to read.
    if (ready == 0 && !std::filesystem::exists(path + ".part")) {
      resume(path, kind);
      CHECK(left.names() == std::vector<std::string>{"outputs.h5.part"});
      continue;
    }
    // How many are gathered is a matter of time.
    const std::string sure = std::to_string(kind.gathers ? 0 : ready);
    check_last_row(path);
    const std::string killed = left.path("killed.h5");
    std::filesystem::copy_file(path + ".part", killed);
    resume(path, kind);
    CHECK(run_python(kCheck, {killed, sure, path + ".part", sure}) == "ok\n");
  }
}

TEST_CASE("a writer that is killed leaves every flushed row readable, and the next resumes") {
  check_kills({}, 20, 100'000);
}

TEST_CASE("so does one that is killed while its ragged arrays grow") { check_kills({}, 6, 3'000); }

TEST_CASE("so does one that gathers small batches") {
  check_kills({.gathers = true}, 200, 100'000);
  check_kills({.is_gzip = true, .gathers = true}, 80, 100'000);
}

TEST_CASE("so does one that compresses") { check_kills({.is_gzip = true}, 80, 100'000); }

TEST_CASE("one that is killed while it makes its arrays leaves a file without rows, or none") {
  check_kills({.is_gzip = true}, 0, 20'000);
}

}  // namespace eval_writer_kill_test
}  // namespace stepop
