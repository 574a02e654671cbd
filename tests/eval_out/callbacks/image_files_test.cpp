#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/core/pictures/image_file.h"
#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace image_files_test {

/// Four grey images of one value each: -1, -1/3, 1/3, 1.
at::Tensor four_images() {
  return at::arange(4).mul(2. / 3).sub(1).to(at::kFloat).view({4, 1, 1, 1}).expand({4, 1, 5, 6});
}

TEST_CASE("each image of an output is a file that has its example's number") {
  const auto looked = look("image_files", {.outputs = {{"fake", four_images()}}},
                           "{images: [fake]}", TensorData(), {0, 3, 7, 12});
  CHECK(looked->value("files") == 4);
  int64_t row = 0;
  for (const char* name : {"0000000", "0000003", "0000007", "0000012"}) {
    const at::Tensor image = read_image(looked->folder.path(fmt::format("fake/{}.png", name)));
    CHECK(image.sizes() == std::vector<int64_t>{1, 5, 6});
    CHECK(image.sub(four_images()[row++]).abs().max().item<float>() < 1. / 255);
  }
}

TEST_CASE("a label says in which folder an image is, and images may be of the dataset") {
  const TensorData data({{"image", at::cat({four_images(), four_images(), four_images()}, 1)}});
  const EvalOutputs outputs{.labels = {{"class", at::tensor({4, 0, 4, 2})}}};
  const auto looked =
      look("image_files", outputs, "{images: [image], by: class, format: jpeg}", data);
  for (const char* file : {"4/0000000", "0/0000001", "4/0000002", "2/0000003"}) {
    CHECK(read_image(looked->folder.path(fmt::format("image/{}.jpg", file))).size(0) == 3);
  }
}

TEST_CASE("what is no image, no folder's name or no format is reported") {
  const EvalOutputs outputs{.outputs = {{"fake", four_images()}},
                            .labels = {{"z", at::full({4, 2}, 1)}}};
  const auto message = [&](const char* params) {
    return message_of([&] { look("image_files", outputs, params); });
  };
  CHECK(message("{}").starts_with("test.yaml:1: images: missing"));
  CHECK(message("{images: [z]}").find("labels/z must hold images") != std::string::npos);
  CHECK(message("{images: [fake], by: z}") ==
        "labels/z must hold one number an example to name folders, found [2]");
  CHECK(message("{images: [fake], format: gif}") ==
        "test.yaml:1: format: expected png or jpeg, found \"gif\"");
}

}  // namespace image_files_test
}  // namespace stepop
