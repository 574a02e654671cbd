#include "runtime/core/pictures/image_grid.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <limits>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace image_grid_test {

using Bytes = std::vector<uint8_t>;

TEST_CASE("a grid is near-square, row by row, and black where no image is left") {
  // Image k is 1 x 2 pixels with the bytes 40 k and 40 k + 20.
  const at::Tensor images = at::arange(10).mul(20).div(127.5).sub(1).view({5, 1, 1, 2});
  const at::Tensor grid = image_grid(images);
  CHECK(describe_tensor(grid) == "uint8 [2, 6, 1]");
  CHECK(values_of<uint8_t>(grid) == Bytes{0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 0, 0});
}

TEST_CASE("the sides of a grid follow the number of images") {
  const auto shape = [](int64_t count) {
    return describe_tensor(image_grid(at::zeros({count, 3, 2, 5})));
  };
  CHECK(shape(1) == "uint8 [2, 5, 3]");
  CHECK(shape(2) == "uint8 [2, 10, 3]");
  CHECK(shape(4) == "uint8 [4, 10, 3]");
  CHECK(shape(7) == "uint8 [6, 15, 3]");
}

TEST_CASE("colour pixels stand channel by channel") {
  const at::Tensor image = at::zeros({1, 3, 1, 2});
  image[0][0][0][0] = 1;
  image[0][1][0][0] = -1;
  image[0][2][0][1] = -1;
  CHECK(values_of<uint8_t>(image_grid(image)) == Bytes{255, 0, 128, 128, 128, 0});
}

TEST_CASE("values outside of [-1, 1] are clamped") {
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor image = at::zeros({1, 1, 1, 4});
  image[0][0][0][0] = -1.5;
  image[0][0][0][1] = 7;
  image[0][0][0][2] = -infinity;
  image[0][0][0][3] = infinity;
  CHECK(values_of<uint8_t>(image_grid(image)) == Bytes{0, 255, 0, 255});
}

TEST_CASE("NaN is magenta, also in a grey batch, which becomes colour") {
  const at::Tensor grey = at::full({1, 1, 1, 2}, 1.0);
  grey[0][0][0][1] = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor grid = image_grid(grey);
  CHECK(describe_tensor(grid) == "uint8 [1, 2, 3]");
  CHECK(values_of<uint8_t>(grid) == Bytes{255, 255, 255, 255, 0, 255});
  const at::Tensor colour = at::full({1, 3, 1, 1}, 0.5);
  colour[0][2][0][0] = std::numeric_limits<double>::quiet_NaN();
  CHECK(values_of<uint8_t>(image_grid(colour)) == Bytes{255, 0, 255});
}

TEST_CASE("any floating-point type and layout gives the same grid") {
  const at::Tensor images = at::rand({3, 3, 4, 5}).mul(2).sub(1).to(at::kBFloat16);
  const at::Tensor grid = image_grid(images);
  CHECK(grid.equal(image_grid(images.to(at::kDouble))));
  CHECK(grid.equal(image_grid(images.to(at::kFloat).requires_grad_())));
  CHECK(grid.equal(image_grid(images.contiguous(at::MemoryFormat::ChannelsLast))));
}

TEST_CASE("the PNG of a grid holds its pixels") {
  const at::Tensor images = at::rand({5, 3, 4, 4}).mul(2).sub(1);
  const at::Tensor decoded = decode_image(image_grid_png(images), "grid");
  const at::Tensor pixels = decoded.add(1).mul(127.5).round().to(at::kByte).permute({1, 2, 0});
  CHECK(pixels.equal(image_grid(images)));
}

TEST_CASE("four channels are RGBA, over a board of two greys where they are transparent") {
  at::Tensor images = at::full({1, 4, 2, 2}, 1.0);
  images.select(1, 3).fill_(-1);               // transparent
  images.select(1, 3).select(1, 1).fill_(1);   // but the lower row
  images.select(1, 2).select(1, 1).fill_(-1);  // which is yellow
  const at::Tensor grid = image_grid(images);
  CHECK(describe_tensor(grid) == "uint8 [2, 2, 3]");
  CHECK(values_of<uint8_t>(grid) == Bytes{153, 153, 153, 204, 204, 204, 255, 255, 0, 255, 255, 0});
}

TEST_CASE("channels that are no colours are shown side by side in grey, at most 16 of them") {
  const at::Tensor images = at::arange(10).mul(20).div(127.5).sub(1).view({1, 5, 1, 2});
  CHECK(values_of<uint8_t>(image_grid(images)) ==
        Bytes{0, 20, 40, 60, 80, 100, 120, 140, 160, 180, 0, 0});
  CHECK(describe_tensor(image_grid(images)) == "uint8 [2, 6, 1]");
  CHECK(describe_tensor(image_grid(at::zeros({1, 2, 4, 5}))) == "uint8 [4, 10, 1]");
  CHECK(describe_tensor(image_grid(at::zeros({3, 40, 4, 5}))) == "uint8 [32, 40, 1]");
}

TEST_CASE("what is no batch of images is named as it was found") {
  const auto message_for = [](const at::Tensor& images) {
    return message_of([&] { image_grid(images); });
  };
  const std::string expected = "images to show are floating-point [B, C, H, W] in [-1, 1], found ";
  CHECK(message_for(at::zeros({4, 8, 8})) == expected + "float32 [4, 8, 8]");
  CHECK(message_for(at::zeros({4, 8, 8, 3})) == expected + "float32 [4, 8, 8, 3]");
  CHECK(message_for(at::zeros({4, 1, 8, 8}, at::kByte)) == expected + "uint8 [4, 1, 8, 8]");
  CHECK(message_for(at::zeros({0, 1, 8, 8})) == expected + "float32 [0, 1, 8, 8]");
  CHECK(message_for({}) == expected + "an undefined tensor");
}

TEST_CASE("images of different sizes with captions cover nothing of each other") {
  const at::Tensor low = at::zeros({10, 40, 1}, at::kByte);
  const at::Tensor high = at::zeros({30, 20, 1}, at::kByte);
  const at::Tensor picture = captioned_picture({{low, {"one"}}, {high, {"two"}}}, 2);
  // Two cells of 40 x 50, with gaps of 14: room for the highest image, 2 pixels, and a line of 18.
  CHECK(describe_tensor(picture) == "uint8 [78, 122, 3]");
  const auto is_black = [&](int64_t top, int64_t left, int64_t height, int64_t width) {
    return picture.slice(0, top, top + height).slice(1, left, left + width).max().item<int>() == 0;
  };
  CHECK(is_black(14, 14, 10, 40));
  CHECK(is_black(14, 68, 30, 20));
  // The caption of each stands below it.
  const auto has_ink = [&](int64_t top, int64_t left) {
    return picture.slice(0, top, top + 18).slice(1, left, left + 40).min().item<int>() < 100;
  };
  CHECK(has_ink(14 + 10 + 2, 14));
  CHECK_FALSE(has_ink(14 + 30 + 2, 14));
  CHECK(has_ink(14 + 30 + 2, 68));
}

}  // namespace image_grid_test
}  // namespace stepop
