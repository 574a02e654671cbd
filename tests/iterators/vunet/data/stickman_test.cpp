// Stick figures against those that tests/data/stickmen/make_stickmen.py drew by brute force.
#include "iterators/vunet/data/stickman.h"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "runtime/core/pictures/image_file.h"
#include "tests/message_of.h"
#include "tests/places.h"

namespace stepop::vunet {
namespace stickman_test {

const std::string kStickmen = STEPOP_SOURCE_DIR "/tests/data/stickmen/";

struct Case {
  std::string file;
  int64_t size = 0;
  StickmanStyle style = {};
  Joints joints = {};
};

std::vector<Case> read_cases() {
  std::ifstream file(kStickmen + "poses.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Case one;
    words >> one.file >> one.size >> one.style.line_width >> one.style.joint_radius;
    for (Joint& joint : one.joints) words >> joint.x >> joint.y;
    REQUIRE(words);
    cases.push_back(one);
  }
  return cases;
}

Joints standing() { return read_cases().front().joints; }

TEST_CASE("stick figures are those of an independent drawing, pixel by pixel") {
  const auto cases = read_cases();
  CHECK(cases.size() == 12);
  for (const Case& one : cases) {
    CAPTURE(one.file);
    const at::Tensor expected = read_image(kStickmen + one.file, 3);
    const at::Tensor drawn = draw_stickman(one.joints, one.size, one.style);
    REQUIRE(drawn.sizes() == expected.sizes());
    CHECK(drawn.ne(expected).sum().item<int64_t>() == 0);
  }
}

TEST_CASE("without a style the lines and joints are as wide as VUNet's") {
  const at::Tensor expected = read_image(kStickmen + "standing.png", 3);
  CHECK(draw_stickman(standing(), 64).equal(expected));
}

TEST_CASE("a joint below the first row or beside the first column is there") {
  CHECK(Joint{0, 0}.is_absent());
  CHECK(Joint{-1, -0.5}.is_absent());
  CHECK_FALSE(Joint{-1, 0.5}.is_absent());
  CHECK_FALSE(Joint{3, 0}.is_absent());
}

TEST_CASE("a joint that is no place is an error that names it") {
  Joints joints = standing();
  joints[3].y = std::numeric_limits<double>::quiet_NaN();
  CHECK(message_of([&] { draw_stickman(joints, 64); }) ==
        "joint 3 is at (20.1, nan): expected pixels, at most 8192 from the image");
  joints[3] = {-1e9, 5};
  CHECK(message_of([&] { draw_stickman(joints, 64); }) ==
        "joint 3 is at (-1000000000, 5): expected pixels, at most 8192 from the image");
}

TEST_CASE("the farthest joints and the widest lines that are allowed overflow nothing") {
  Joints joints = {};
  joints[2] = {-8192, 8192};
  joints[3] = {8192, -8192};
  const at::Tensor image = draw_stickman(joints, 4, {.line_width = 255, .joint_radius = 1});
  CHECK(image[0].eq(1).all().item<bool>());
  CHECK(image[1].eq(-1).all().item<bool>());
  joints[3] = {8192, 8192};  // far below the image
  CHECK(
      draw_stickman(joints, 4, {.line_width = 255, .joint_radius = 255}).eq(-1).all().item<bool>());
}

}  // namespace stickman_test
}  // namespace stepop::vunet
