#include "iterators/vunet/data/figure.h"

#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "iterators/vunet/data/skeleton.h"

namespace stepop::vunet {
namespace figure_test {

Pose pose_number(uint64_t number) {
  Random random(mix_seed({11, number}));
  return random_pose(random);
}

Appearance person_number(uint64_t number) {
  Random random(mix_seed({12, number}));
  return random_appearance(random);
}

/// Where an image is not the background: bool [size, size].
at::Tensor person_in(const at::Tensor& image) {
  return image.ne(image.slice(1, 0, 1).slice(2, 0, 1)).any(0);
}

int64_t count(const at::Tensor& mask) { return mask.sum().item<int64_t>(); }

TEST_CASE("the table of sines is that of the sine") {
  for (int64_t degrees = -720; degrees <= 720; ++degrees) {
    const double radians = static_cast<double>(degrees) * 3.14159265358979323846 / 180;
    CHECK(std::abs(static_cast<double>(sine(degrees)) - 16384 * std::sin(radians)) <= 0.5 + 1e-9);
    CHECK(std::abs(static_cast<double>(cosine(degrees)) - 16384 * std::cos(radians)) <= 0.5 + 1e-9);
  }
}

TEST_CASE("every joint of every person is in the image, and on the person") {
  int64_t hidden = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const Joints joints = joints_of(pose_number(i), 64);
    const at::Tensor person = person_in(draw_figure(person_number(i), pose_number(i), 64));
    for (size_t j = 0; j < joints.size(); ++j) {
      CAPTURE(i);
      CAPTURE(j);
      if (joints[j].is_absent()) {
        ++hidden;
        CHECK((j == 16 || j == 17));  // no more than an ear
        continue;
      }
      REQUIRE(joints[j].x > 0);
      REQUIRE(joints[j].y > 0);
      REQUIRE(joints[j].x < 64);
      REQUIRE(joints[j].y < 64);
      // An ear is at the rim of the head, half a pixel more or less.
      const auto row = static_cast<int64_t>(joints[j].y);
      const auto column = static_cast<int64_t>(joints[j].x);
      CHECK(count(person.slice(0, row - 1, row + 2).slice(1, column - 1, column + 2)) > 0);
      if (j < 14) CHECK(person[row][column].item<bool>());
    }
  }
  CHECK(hidden > 100);
  CHECK(hidden < 300);
}

TEST_CASE("a person is all in the image: its border is background") {
  for (uint64_t i = 0; i < 300; ++i) {
    CAPTURE(i);
    const at::Tensor person = person_in(draw_figure(person_number(i), pose_number(i), 64));
    CHECK(count(person.slice(0, 0, 1)) + count(person.slice(0, 63)) + count(person.slice(1, 0, 1)) +
              count(person.slice(1, 63)) ==
          0);
    CHECK(count(person) > 250);
  }
}

TEST_CASE(
    "the pose places a person, whoever it is, and the appearance colours it, whatever it does") {
  std::set<std::tuple<int, int, int>> backgrounds;
  for (uint64_t i = 0; i < 50; ++i) {
    CAPTURE(i);
    const Appearance one = person_number(2 * i);
    const Appearance other = person_number(2 * i + 1);
    const at::Tensor a = person_in(draw_figure(one, pose_number(i), 64));
    const at::Tensor b = person_in(draw_figure(other, pose_number(i), 64));
    CHECK(2 * count(a & b) > count(a | b));  // intersection over union above one half
    backgrounds.insert({one.background.red, one.background.green, one.background.blue});
    // The shirt is in the picture in every pose.
    for (uint64_t pose = 0; pose < 5; ++pose) {
      Appearance plain = one;
      plain.pattern = Pattern::kPlain;
      const at::Tensor image = draw_figure(plain, pose_number(100 * i + pose), 64) * 127.5 + 127.5;
      const at::Tensor shirt = (image[0] - plain.shirt.red).abs().lt(0.5) &
                               (image[1] - plain.shirt.green).abs().lt(0.5) &
                               (image[2] - plain.shirt.blue).abs().lt(0.5);
      CHECK(count(shirt) > 15);
    }
  }
  CHECK(backgrounds.size() == 50);
}

TEST_CASE("a person is the same at every size of the image") {
  for (uint64_t i = 0; i < 20; ++i) {
    const Joints small = joints_of(pose_number(i), 64);
    const Joints large = joints_of(pose_number(i), 256);
    for (size_t j = 0; j < small.size(); ++j) {
      CHECK(large[j].x == 4 * small[j].x);
      CHECK(large[j].y == 4 * small[j].y);
    }
    const at::Tensor image = draw_figure(person_number(i), pose_number(i), 256);
    const at::Tensor pooled =
        person_in(image).to(at::kFloat).reshape({64, 4, 64, 4}).mean(at::IntArrayRef{1, 3}).gt(0.5);
    const at::Tensor person = person_in(draw_figure(person_number(i), pose_number(i), 64));
    CHECK(10 * count(pooled & person) > 8 * count(pooled | person));
  }
}

TEST_CASE("limbs keep within what people's joints allow") {
  const auto apart = [](const Joints& joints, size_t a, size_t b) {
    return std::hypot(joints[a].x - joints[b].x, joints[a].y - joints[b].y);
  };
  for (uint64_t i = 0; i < 500; ++i) {
    CAPTURE(i);
    const Pose pose = pose_number(i);
    const Joints joints = joints_of(pose, 1000);
    const double height = static_cast<double>(pose.height) * 1000 / 65536;
    for (const size_t hip : {size_t{8}, size_t{11}}) {
      const double leg = apart(joints, hip, hip + 1) + apart(joints, hip + 1, hip + 2);
      CHECK(leg < 0.466 * height);
      CHECK(leg > 0.38 * height);
      CHECK(joints[hip + 2].y > joints[hip].y - 0.1 * height);  // no foot above the hips
    }
    for (const Limb& leg : pose.legs) {
      CHECK(std::abs(leg.upper_angle - leg.lower_angle) <= 75);
    }
    for (const Limb& arm : pose.arms) {
      CHECK(std::abs(arm.upper_angle - arm.lower_angle) <= 130);
    }
    CHECK(joints[0].y < joints[1].y);  // the head is above the shoulders
    CHECK(joints[2].x < joints[5].x);  // people face us
  }
}

}  // namespace figure_test
}  // namespace stepop::vunet
