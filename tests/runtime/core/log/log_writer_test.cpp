#include "runtime/core/log/log_writer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>

#include "runtime/core/pictures/image_grid.h"
#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace log_writer_test {

UnfinishedLog log_of(int64_t step, const Logs& logs, const ImageEncoding& encoding = {}) {
  UnfinishedLog log{.event = {.step = step}};
  add_files(log, "train/log_op", logs, encoding);
  return log;
}

TEST_CASE("pictures are those of the moment of the log, whatever becomes of the tensors") {
  const ScratchFolder folder;
  at::Tensor images = at::arange(2 * 3 * 8 * 8).view({2, 3, 8, 8}).div(200).sub(1);
  at::Tensor y = at::arange(5).to(at::kFloat);
  const std::string expected = image_grid_png(images);
  const std::string curve = curve_picture({at::arange(5), y.clone()});
  LogWriter writer(folder.path(), nullptr);
  for (int64_t step = 1; step <= 5; ++step) {
    writer.push(
        log_of(step, {.images = {{"input", images}}, .curves = {{"roc", {at::arange(5), y}}}}));
    if (step < 5) continue;
    images.zero_();
    y.zero_();
  }
  writer.wait();
  for (int64_t step = 1; step <= 5; ++step) {
    const std::string name = name_with_step("", step);
    CHECK(read_bytes(folder / ("train/log_op/input" + name + ".png")) == expected);
    CHECK(read_bytes(folder / ("train/log_op/roc" + name + ".png")) == curve);
  }
}

TEST_CASE("logs are handed back with their pictures, in their order, once they are files") {
  const ScratchFolder folder;
  LogWriter writer(folder.path(), nullptr);
  CHECK(writer.is_idle());
  CHECK_FALSE(writer.take_written());
  writer.push(log_of(1, {.images = {{"input", at::zeros({1, 1, 4, 4})}}}));
  writer.push(log_of(2, {}));
  writer.push(log_of(3, {.texts = {{"sample", "once"}}}));
  CHECK_FALSE(writer.is_idle());
  writer.wait();
  for (const int64_t step : {1, 2, 3}) {
    const auto log = writer.take_written();
    REQUIRE(log);
    CHECK(log->event.step == step);
    CHECK(log->record.images.contains("train/log_op/input") == (step == 1));
  }
  CHECK(writer.is_idle());
  CHECK(read_bytes(folder / "train/log_op/sample_0000003.txt") == "once");
}

TEST_CASE("images become JPEG files where that is asked for; plots stay PNG") {
  const ScratchFolder folder;
  LogWriter writer(folder.path(), nullptr);
  writer.push(log_of(7,
                     {.images = {{"input", at::zeros({4, 3, 8, 8})}},
                      .curves = {{"roc", {at::arange(5), at::arange(5)}}}},
                     {.is_jpeg = true, .quality = 80}));
  writer.wait();
  const std::string bytes = read_bytes(folder / "train/log_op/input_0000007.jpg");
  CHECK(bytes == encode_jpeg(image_grid(at::zeros({4, 3, 8, 8})), 80));
  CHECK(image_head(bytes).value().width == 16);
  CHECK(std::filesystem::exists(folder / "train/log_op/roc_0000007.png"));
}

TEST_CASE("a full disk is the error of whatever is asked next, and nothing is written after it") {
  const ScratchFolder folder;
  LogWriter writer(folder.path(), nullptr);
  const std::string expected = "cannot write " + folder.path("train/log_op/input_0000001.png.tmp") +
                               ": No space left on device";
  {
    FailingFiles files;
    files.fail(FileCall::kWrite, 1, ENOSPC);
    writer.push(log_of(1, {.images = {{"input", at::zeros({1, 1, 4, 4})}}}));
    CHECK(message_of([&] { writer.wait(); }) == expected);
  }
  CHECK(message_of([&] { writer.take_written(); }) == expected);
  CHECK(message_of([&] { writer.push(log_of(2, {.texts = {{"sample", "once"}}})); }) == expected);
  CHECK_FALSE(std::filesystem::exists(folder / "train/log_op/input_0000001.png"));
  CHECK_FALSE(std::filesystem::exists(folder / "train/log_op/sample_0000002.txt"));
}

TEST_CASE("an image that no JPEG can be made of is named") {
  const ScratchFolder folder;
  LogWriter writer(folder.path(), nullptr);
  writer.push(log_of(1, {.images = {{"wide", at::zeros({1, 1, 1, 70000})}}}, {.is_jpeg = true}));
  CHECK(message_of([&] { writer.wait(); }) ==
        "train/log_op/wide: the JPEG of uint8 [1, 70000, 1] cannot be made: Maximum supported "
        "image dimension is 65500 pixels");
}

TEST_CASE("a writer that ends waits for what it was given") {
  const ScratchFolder folder;
  {
    LogWriter writer(folder.path(), nullptr);
    for (int64_t step = 1; step <= 8; ++step) {
      writer.push(log_of(step, {.images = {{"input", at::full({16, 3, 64, 64}, 0.5)}}}));
    }
  }
  CHECK(std::filesystem::exists(folder / "train/log_op/input_0000008.png"));
}

}  // namespace log_writer_test
}  // namespace stepop
