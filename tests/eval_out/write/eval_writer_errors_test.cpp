#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <numeric>

#include "eval_out/write/eval_writer.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_writer_errors_test {

const std::vector<int64_t> kFirst{0, 1};
const std::vector<int64_t> kSecond{2, 3};

/// What a second batch fails with, after a first one with logits [2, 3] and boxes, ragged.
std::string second_batch(const EvalOutputs& outputs) {
  const ScratchFolder folder;
  EvalWriter writer(folder.path("outputs.h5"), 4);
  const std::vector<at::Tensor> boxes{at::ones({1, 4}), at::ones({2, 4})};
  writer.write({.outputs = {{"logits", at::ones({2, 3})}, {"boxes", boxes}}}, kFirst);
  return message_of([&] { writer.write(outputs, kSecond); });
}

TEST_CASE("keys, shapes and types stay those of the first batch") {
  const std::vector<at::Tensor> boxes{at::ones({0, 4}), at::ones({5, 4})};
  const at::Tensor logits = at::ones({2, 3});
  CHECK(second_batch({.outputs = {{"boxes", boxes}, {"logits", logits}}}) == "no error");
  CHECK(second_batch({.outputs = {{"logits", logits}}}) ==
        "eval_op: outputs/boxes is missing in rows 2 to 3; the first batch had it");
  CHECK(second_batch({.outputs = {{"logits", logits}, {"boxes", boxes}, {"more", logits}}}) ==
        "eval_op: outputs/more appears in rows 2 to 3; the first batch did not have it");
  CHECK(second_batch({.outputs = {{"logits", at::ones({2, 4})}, {"boxes", boxes}}}) ==
        "eval_op: outputs/logits has shape [4] an example in rows 2 to 3, it had [3] in the first "
        "batch");
  CHECK(second_batch({.outputs = {{"logits", logits.to(at::kHalf)}, {"boxes", boxes}}}) ==
        "eval_op: outputs/logits is float16 in rows 2 to 3, it was float32 in the first batch");
  CHECK(second_batch({.outputs = {{"logits", logits}, {"boxes", logits}}}) ==
        "eval_op: outputs/boxes is float32 in rows 2 to 3, it was ragged float32 in the first "
        "batch");
  CHECK(second_batch(
            {.outputs = {{"logits", std::vector<std::string>{"a", "b"}}, {"boxes", boxes}}}) ==
        "eval_op: outputs/logits is text in rows 2 to 3, it was float32 in the first batch");
  CHECK(second_batch({.outputs = {{"logits", at::ones({3, 3})}, {"boxes", boxes}}}) ==
        "eval_op: outputs/logits has first dimension 3, the batch has 2 examples");
}

TEST_CASE("each example is written once, in the dataset's order") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  EvalWriter writer(path, 4);
  const EvalOutputs outputs{.labels = {{"loss", at::ones({2})}}};
  writer.write(outputs, kSecond);
  const std::string help = "; the rows are written once each, in the dataset's order";
  CHECK(message_of([&] {
          writer.write(outputs, std::vector<int64_t>{3, 4});
        }) == path + ": rows 2 to 3: example 3 comes after example 3" + help);
  CHECK(message_of([&] {
          writer.write(outputs, std::vector<int64_t>{9, 8});
        }) == path + ": rows 2 to 3: example 8 comes after example 9" + help);
  writer.write(outputs, std::vector<int64_t>{4, 5});
  CHECK(message_of([&] {
          writer.write(outputs, std::vector<int64_t>{6, 7});
        }) == path + ": rows 4 to 5 are more than the 4 that it was made for");
  writer.finish();
  writer.finish();
  CHECK(message_of([&] {
          writer.write(outputs, std::vector<int64_t>{6, 7});
        }) == path + " is finished, it takes no more rows");
}

TEST_CASE("a file with missing rows is not finished") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  EvalWriter writer(path, 4);
  writer.write({.labels = {{"loss", at::ones({2})}}}, kFirst);
  CHECK(message_of([&] { writer.finish(); }) == path + ": only 2 of 4 rows were written");
  CHECK_FALSE(std::filesystem::exists(path));
  writer.write({.labels = {{"loss", at::ones({2})}}}, kSecond);
  writer.finish();
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("a file that cannot be created is an error with its path and the reason") {
  const ScratchFolder folder;
  CHECK(message_of([&] { EvalWriter(folder.path("no/outputs.h5"), 1); }) ==
        "cannot create " + folder.path("no/outputs.h5.part") + ": No such file or directory");
  std::filesystem::create_directory(folder.path("outputs.h5.part"));
  CHECK(message_of([&] { EvalWriter(folder.path("outputs.h5"), 1); }) ==
        "cannot create " + folder.path("outputs.h5.part") + ": Is a directory");
}

TEST_CASE("a file that cannot get its name is an error, and the .part stays") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  std::filesystem::create_directories(path + "/in the way");
  EvalWriter writer(path, 2);
  writer.write({.labels = {{"loss", at::ones({2})}}}, kFirst);
  CHECK(message_of([&] { writer.finish(); }) ==
        "cannot rename " + path + ".part to " + path + ": Is a directory");
  CHECK(std::filesystem::exists(path + ".part"));
}

TEST_CASE("the writer's own attributes cannot be set") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  CHECK(message_of([&] {
          EvalWriter(path, 1, {{"rows", int64_t{7}}});
        }) == path + ": the attribute \"rows\" is the writer's own");
}

TEST_CASE("options and sizes that make no sense are refused") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  CHECK(message_of([&] { EvalWriter(path, -1); }) == path + ": cannot have -1 rows");
  CHECK(message_of([&] { EvalWriter(path, 1, {}, {.queued_batches = 0}); }) ==
        "queued_batches must be at least 1, found 0");
}

TEST_CASE("outputs for which the disk is too small stop the evaluation at its first batch") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  EvalWriter writer(path, 1'000'000'000'000);
  writer.write({.outputs = {{"logits", at::ones({2, 10})}}}, kFirst);
  const std::string message = message_of([&] {
    for (int64_t row = 2;; row += 2) {
      writer.write({.outputs = {{"logits", at::ones({2, 10})}}},
                   std::vector<int64_t>{row, row + 1});
    }
  });
  CHECK(message.starts_with(path + ".part: 1000000000000 rows need 48000.0 GB, the disk has "));
}

/// No file of this process grows beyond `bytes` while it lives: the system then answers as it does
/// for a full disk, with another reason.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST_CASE("arrays that no file can hold are reported at the first batch") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const FileSizeLimit limit(1'000'000);
  EvalWriter writer(path, 100);
  writer.write({.outputs = {{"image", at::ones({2, 100'000})}}}, kFirst);
  CHECK(message_of([&] { writer.finish(); }) ==
        path + ".part: the first batch: cannot write: File too large");
}

TEST_CASE("a file that failed before its first rows does not stay") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const FileSizeLimit limit(2'500'000);
  {
    EvalWriter writer(path, 2);
    const std::vector<std::string> text{std::string(4'000'000, 'x')};
    writer.write({.outputs = {{"text", text}}}, std::vector<int64_t>{0});
    CHECK(message_of([&] { writer.finish(); }) ==
          "cannot reserve 8.1 MB in " + path + ".part: File too large");
    CHECK(std::filesystem::exists(path + ".part"));
  }
  CHECK(folder.names().empty());
}

TEST_CASE("a batch that the disk does not take is reported by the next call, with the reason") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  {
    EvalWriter writer(path, 1000, {}, {.gather_time = std::chrono::milliseconds(0)});
    const std::vector<std::string> text{std::string(10'000, 'x')};
    std::string message;
    {
      const FileSizeLimit limit(1'000'000);
      message = message_of([&] {
        for (int64_t row = 0; row < 1000; ++row) {
          writer.write({.outputs = {{"text", text}}}, std::vector<int64_t>{row});
        }
      });
      CHECK(message_of([&] {
              writer.write({.outputs = {{"text", text}}}, std::vector<int64_t>{999});
            }) == message);
      CHECK(message_of([&] { writer.finish(); }) == message);
    }
    CHECK(message == "cannot reserve 93.8 kB in " + path + ".part: File too large");
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(run_python(R"(
import sys, h5py
f = h5py.File(sys.argv[1], "r")
n = f.attrs["rows"]
print(bool(n > 50), f.attrs["complete"], all(len(text) == 10000 for text in f["outputs/text"][:n]))
)",
                   {path + ".part"}) == "True False True\n");
}

}  // namespace eval_writer_errors_test
}  // namespace stepop
