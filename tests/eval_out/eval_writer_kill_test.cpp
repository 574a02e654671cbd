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
#include <numeric>

#include "eval_out/eval_reader.h"
#include "eval_out/eval_writer.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

constexpr int64_t kRows = 1'000'000;
constexpr int64_t kBatch = 16;
constexpr const char* kPathVariable = "STEPOP_TEST_WRITE_TO";
constexpr const char* kReadyVariable = "STEPOP_TEST_READY_AFTER";

/// Row i: x is [i, i], a text is "row i", the ragged array has i % 5 (after the first batch, to
/// make it grow, 40 + i % 5) values i.
void write_batch(EvalWriter& writer, int64_t first) {
  std::vector<int64_t> indices(kBatch);
  std::iota(indices.begin(), indices.end(), first);
  std::vector<at::Tensor> ragged;
  std::vector<std::string> texts;
  for (const int64_t i : indices) {
    ragged.push_back(at::full({first > 0 ? 40 + i % 5 : 0}, i));
    texts.push_back("row " + std::to_string(i));
  }
  const at::Tensor rows = at::arange(first, first + kBatch, at::kFloat);
  writer.write({.outputs = {{"deep/x", rows.unsqueeze(1).expand({kBatch, 2})},
                            {"ragged", ragged},
                            {"text", texts}},
                .labels = {{"loss", rows}}},
               indices);
}

TEST_CASE("(child) writes until it is killed" * doctest::skip()) {
  const char* path = std::getenv(kPathVariable);
  const char* ready = std::getenv(kReadyVariable);
  if (path == nullptr || ready == nullptr) return;  // somebody runs skipped tests as well
  const int64_t ready_row = std::atoi(ready) * kBatch;
  EvalWriter writer(path, kRows);
  for (int64_t first = 0; first < kRows; first += kBatch) {
    write_batch(writer, first);
    if (first == ready_row) CHECK(::write(STDERR_FILENO, "+", 1) == 1);
  }
}

/// Starts this program again, to write to `path`, waits until `ready` batches are accepted and
/// `microseconds` longer, and kills it.
void kill_a_writer(const std::string& path, int ready, int microseconds) {
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
}

const std::string kCheck = R"(
import sys, h5py, numpy as np
for path, ready in zip(sys.argv[1::2], sys.argv[2::2]):
    f = h5py.File(path, "r")
    n = int(f.attrs["rows"])
    assert n >= (int(ready) - 4) * 16 and n % 16 == 0, n  # three wait and one is being written
    assert not f.attrs["complete"]
    rows = np.arange(n)
    assert (f["index"][:n] == rows).all()
    assert (f["labels/loss"][:n] == rows).all()
    assert f["outputs/deep/x"].shape == (1000000, 2)
    assert f["outputs/deep/x"][()].shape == (1000000, 2)  # the whole array can be read
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
  const int64_t last = file.rows() - 1;
  CHECK(file.read("outputs/deep/x", last, 1).sum().item<double>() ==
        2.0 * static_cast<double>(last));
  CHECK(file.read_texts("outputs/text", last, 1).at(0) == "row " + std::to_string(last));
  const int64_t length = last < kBatch ? 0 : 40 + last % 5;
  CHECK(file.read_ragged("outputs/ragged", last, 1).at(0).size(0) == length);
}

/// Writes three more batches behind what was left.
void go_on(const std::string& path) {
  const int64_t rows = EvalFile(path + ".part").rows();
  {
    EvalWriter writer(path, kRows, {}, {.go_on = true});
    REQUIRE(writer.rows() == rows);
    for (int i = 0; i < 3; ++i) write_batch(writer, rows + i * kBatch);
  }
  CHECK(EvalFile(path + ".part").rows() == rows + 3 * kBatch);
  check_last_row(path);
}

/// Kills one writer after another, and lets h5py read what they left.
void check_kills(int ready, int longest_wait) {
  const ScratchFolder folder;
  const char* more = std::getenv("STEPOP_TEST_KILLS");
  const int kills = more == nullptr ? 3 : std::atoi(more);
  std::vector<std::string> arguments;
  for (int i = 0; i < kills; ++i) {
    const std::string path = folder.path(std::to_string(i) + ".h5");
    kill_a_writer(path, ready, i * 7919 % longest_wait);
    arguments.insert(arguments.end(), {path + ".part", std::to_string(ready)});

    check_last_row(path);
    go_on(path);
  }
  CHECK(run_python(kCheck, arguments) == "ok\n");
}

TEST_CASE("a writer that is killed leaves every flushed row readable, and the next goes on") {
  check_kills(20, 100'000);
}

TEST_CASE("so does one that is killed while its ragged arrays grow") { check_kills(6, 3'000); }

}  // namespace
}  // namespace stepop
