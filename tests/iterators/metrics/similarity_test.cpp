// PSNR, SSIM and luma against scikit-image and BasicSR's formulas: tests/data/extensible.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>

#include "iterators/metrics/similarity.h"
#include "runtime/core/formats/safetensors.h"
#include "tests/message_of.h"
#include "tests/places.h"

namespace stepop {
namespace similarity_test {

TEST_CASE("PSNR and SSIM are scikit-image's, one number for each image") {
  const State expected =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/extensible/metrics.safetensors").tensors;
  const at::Tensor& real = expected.at("real");
  const at::Tensor& fake = expected.at("fake");
  CHECK(at::allclose(metrics::psnr(real, fake, 1), expected.at("psnr_raw"), 1e-10, 0));
  CHECK(at::allclose(metrics::ssim(real, fake, 1), expected.at("ssim_raw"), 1e-10, 0));
  // The scale does not matter.
  CHECK(at::allclose(metrics::ssim(real * 255, fake * 255, 255), expected.at("ssim_raw"), 1e-6, 0));
  CHECK(
      at::allclose(metrics::ssim(real * 2 - 1, fake * 2 - 1, 2), expected.at("ssim_raw"), 1e-6, 0));
  CHECK(
      at::allclose(metrics::psnr(real * 2 - 1, fake * 2 - 1, 2), expected.at("psnr_raw"), 1e-6, 0));
}

TEST_CASE("equal images have an infinite PSNR and an SSIM of 1") {
  const at::Tensor image = at::rand({2, 1, 12, 11});
  CHECK(std::isinf(metrics::psnr(image, image, 1)[1].item<double>()));
  CHECK(metrics::ssim(image, image, 1)[0].item<double>() == doctest::Approx(1));
}

TEST_CASE("luma has MATLAB's range: black is 16, white 235") {
  const at::Tensor colours = at::tensor({0, 0, 0, 255, 255, 255, 255, 0, 0}, at::kFloat);
  const at::Tensor y = metrics::luma(colours.view({3, 3, 1, 1}));
  CHECK(y.sizes() == at::IntArrayRef{3, 1, 1, 1});
  CHECK(at::allclose(y.flatten(), at::tensor({16.0, 235.0, 81.481}, at::kDouble)));
}

TEST_CASE("images that cannot be compared are named") {
  const at::Tensor image = at::zeros({1, 3, 10, 12});
  CHECK(message_of([&] { metrics::ssim(image, image, 1); }) ==
        "SSIM needs images of at least 11 x 11 pixels, found float32 [1, 3, 10, 12]");
  CHECK(message_of([&] {
          metrics::psnr(image, at::zeros({1, 3, 10, 11}), 1);
        }) ==
        "psnr: expected two batches of images [B, C, H, W] of one shape, found float32 [1, 3, 10, "
        "12] and float32 [1, 3, 10, 11]");
  CHECK(message_of([&] {
          metrics::luma(at::zeros({1, 1, 2, 2}));
        }) == "luma is that of colours, [B, 3, H, W], found float32 [1, 1, 2, 2]");
}

}  // namespace similarity_test
}  // namespace stepop
