#include "runtime/train/checks/image_range.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <limits>

namespace stepop {
namespace image_range_test {

std::string warning(float low, float high) {
  return image_range_warning("train/log_op/input", at::tensor({low, 0.0F, high}));
}

TEST_CASE("images that are far from [-1, 1] are reported with their range and what is expected") {
  CHECK(warning(0, 255) ==
        "train/log_op/input: its numbers are from 0 to 255, and the picture shows those from -1 "
        "(black) to 1 (white): divide by 127.5 and subtract 1");
  CHECK(warning(-300, 4) ==
        "train/log_op/input: its numbers are from -300 to 4, and the picture shows those from -1 "
        "(black) to 1 (white)");
}

TEST_CASE("what a network computes may be a little outside, or not a number") {
  CHECK(warning(-1, 1) == "");
  CHECK(warning(-6, 8) == "");
  CHECK(warning(0, std::numeric_limits<float>::quiet_NaN()) == "");
  CHECK(image_range_warning("x", at::zeros({0, 3, 8, 8})) == "");
}

}  // namespace image_range_test
}  // namespace stepop
