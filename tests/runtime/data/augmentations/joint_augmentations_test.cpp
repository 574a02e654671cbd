#include "runtime/data/augmentations/joint_augmentations.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rot90.h>
#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/augmentations/warp.h"
#include "tests/message_of.h"

namespace stepop {
namespace joint_augmentations_test {

Config both(const std::string& yaml) {
  return Config(parse_yaml("both: " + yaml, {"test.yaml", 0})).at("both");
}

/// x and y of each pixel, as [2, size, size] in [-1, 1].
at::Tensor coordinates(int64_t size) {
  const at::Tensor line = at::arange(size, at::kFloat) / static_cast<double>(size - 1) * 2 - 1;
  return at::cat({line.expand({1, size, size}), line.unsqueeze(1).expand({1, size, size})});
}

/// Three channels that are linear in `place`, the x and y of each pixel.
at::Tensor linear_in(const at::Tensor& place) {
  return at::cat({place.narrow(0, 0, 1) * 0.25 + place.narrow(0, 1, 1) * 0.5,
                  -place.narrow(0, 0, 1), place.narrow(0, 1, 1) * 0.125 - 0.5});
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

constexpr const char* kElastic =
    "{h_flip_chance: 0, elastic_transform_chance: 1, elastic_transform_alpha: 400, "
    "elastic_transform_sigma: 6}";

TEST_CASE("joint augmentations move input and target alike, pixel by pixel") {
  for (const std::string changes :
       {"{h_flip_chance: 1}", "{h_flip_chance: 0, v_flip_chance: 1}",
        "{h_flip_chance: 0, rot90_chance: 1}", kElastic,
        "{h_flip_chance: 0, optical_distortion_chance: 1, optical_distortion_min: 0.3, "
        "optical_distortion_max: 0.5}",
        "{h_flip_chance: 0, optical_distortion_chance: 1, optical_distortion_min: -0.5, "
        "optical_distortion_max: -0.3, optical_distortion_mode: fisheye}",
        "{h_flip_chance: 0.5, v_flip_chance: 0.5, rot90_chance: 0.5, elastic_transform_chance: "
        "0.5, elastic_transform_alpha: 100, optical_distortion_chance: 0.5}"}) {
    CAPTURE(changes);
    const JointAugmentations augmentations(both(changes));
    bool differs = false;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      at::Tensor place = coordinates(33);
      at::Tensor image = linear_in(place);
      Random random(seed);
      augmentations.apply(place, image, random);
      differs = differs || largest_difference(place, coordinates(33)) > 0.02;
      // Where the first image says that each pixel came from, the second one's came from, too.
      CHECK(largest_difference(image, linear_in(place)) < 1e-5);

      at::Tensor same = coordinates(33);
      at::Tensor again = coordinates(33);
      Random equal(seed);
      augmentations.apply(same, again, equal);
      CHECK(same.equal(again));
      CHECK(same.equal(place));
    }
    CHECK(differs);
  }
}

TEST_CASE("holes are black, at one place in both, within their range") {
  const JointAugmentations augmentations(
      both("{h_flip_chance: 0, coarse_dropout_chance: 1, coarse_dropout_holes_min: 1, "
           "coarse_dropout_holes_max: 1, coarse_dropout_height_min: 0.25, "
           "coarse_dropout_height_max: 0.25, coarse_dropout_width_min: 0.5, "
           "coarse_dropout_width_max: 0.5}"));
  const at::Tensor white = at::ones({3, 16, 20}, at::kFloat);
  at::Tensor first = white;
  at::Tensor second = at::ones({1, 16, 20}, at::kFloat);
  Random random(7);
  augmentations.apply(first, second, random);
  CHECK(first.narrow(0, 0, 1).equal(second));
  CHECK((second == -1).sum().item<int64_t>() == 4 * 10);
  CHECK((second == 1).sum().item<int64_t>() == 16 * 20 - 4 * 10);
  CHECK(white.min().item<float>() == 1);  // a copy was changed
}

TEST_CASE("flips and turns are those of the image; a chance of 0 draws nothing") {
  const at::Tensor image = at::arange(3 * 4 * 5, at::kFloat).reshape({3, 4, 5});
  const auto changed = [&](const std::string& yaml, uint64_t seed = 0) {
    at::Tensor first = image;
    at::Tensor second = image;
    Random random(seed);
    JointAugmentations(both(yaml)).apply(first, second, random);
    return first;
  };
  CHECK(changed("{h_flip_chance: 1}").equal(at::flip(image, {2})));
  CHECK(changed("{h_flip_chance: 0, v_flip_chance: 1}").equal(at::flip(image, {1})));
  int64_t turns = 0;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    const at::Tensor turned = changed("{h_flip_chance: 0, rot90_chance: 1}", seed);
    for (int64_t quarters = 0; quarters < 4; ++quarters) {
      if (turned.equal(at::rot90(image, quarters, {1, 2}))) turns |= int64_t{1} << quarters;
    }
  }
  CHECK(turns == 0b1111);
  int64_t mirrored = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) mirrored += !changed("{}", seed).equal(image);
  CHECK(std::abs(mirrored - 100) < 30);  // half of them, as in NectarGAN's default

  at::Tensor first = image;
  at::Tensor second = image;
  Random random(3);
  JointAugmentations(both("{h_flip_chance: 0}")).apply(first, second, random);
  CHECK(random() == Random(3)());
  CHECK(first.is_same(image));
}

TEST_CASE("a map's numbers are the places that pixels come from") {
  const at::Tensor place = coordinates(9);
  CHECK(largest_difference(warp(place, identity_map(9, 9)), place) < 1e-6);
  CHECK(largest_difference(camera_map(9, 7, 0), identity_map(9, 7)) < 1e-5);
  // k1 = k2 = k at the left edge's middle of 200 x 100 pixels: r = 1/2, (1 + k/4 + k/16) / 2.
  const at::Tensor map = camera_map(100, 200, 0.2);
  CHECK(map[50][0][0].item<double>() == doctest::Approx((0.5 - 0.5 * 1.0625) * 200));
  CHECK(map[50][0][1].item<double>() == doctest::Approx(50));
  // The corner's radius is 1.
  const at::Tensor fisheye = fisheye_map(100, 200, 0.2);
  CHECK(fisheye[0][0][0].item<double>() == doctest::Approx(100 - 100 * 1.2));
  CHECK(fisheye[0][0][1].item<double>() == doctest::Approx(50 - 50 * 1.2));
  // A shift by 1.5 pixels to the right, whose left border is repeated.
  at::Tensor to_the_left = identity_map(4, 4);
  to_the_left.select(2, 0).sub_(1.5);
  const at::Tensor shifted = warp(at::arange(4, at::kFloat).expand({1, 4, 4}), to_the_left);
  CHECK(largest_difference(shifted[0][2], (at::arange(4, at::kFloat) - 1.5).clamp_min(0)) < 1e-5);
}

TEST_CASE("an elastic map is smooth, as strong as alpha says, and another one each time") {
  const auto moved = [](double alpha, double sigma, uint64_t seed) {
    Random random(seed);
    return elastic_map(48, 64, alpha, sigma, random) - identity_map(48, 64);
  };
  CHECK(moved(1, 50, 0).abs().max().item<double>() < 0.2);
  const at::Tensor once = moved(100, 4, 0);
  CHECK(largest_difference(moved(200, 4, 0), once * 2) < 1e-3);
  CHECK(once.equal(moved(100, 4, 0)));
  CHECK(largest_difference(once, moved(100, 4, 1)) > 1);
  const auto roughness = [](const at::Tensor& field) {
    const at::Tensor steps = field.narrow(1, 1, 63) - field.narrow(1, 0, 63);
    return (steps.abs().mean() / field.abs().mean()).item<double>();
  };
  CHECK(roughness(moved(100, 8, 0)) < 0.5 * roughness(moved(100, 2, 0)));
}

TEST_CASE("mistakes in joint augmentations are reported at their place") {
  const auto message = [](const std::string& yaml, int64_t scale = 1) {
    return message_of([&] { JointAugmentations(both(yaml), scale); });
  };
  CHECK(message("{h_flip_chance: 2}") ==
        "test.yaml:1: both/h_flip_chance: expected a number from 0 to 1, found 2");
  CHECK(message("{coarse_dropout_holes_min: 3}") ==
        "test.yaml:1: both/coarse_dropout_holes_max: expected coarse_dropout_holes_min, 3, or "
        "more, found 2");
  CHECK(message("{optical_distortion_max: 7}") ==
        "test.yaml:1: both/optical_distortion_max: expected -1 to 1, found 7");
  CHECK(message("{optical_distortion_mode: lens}") ==
        "test.yaml:1: both/optical_distortion_mode: expected camera or fisheye, found \"lens\"");
  CHECK(message("{elastic_transform_sigma: 0}") ==
        "test.yaml:1: both/elastic_transform_sigma: expected a number above 0 to 1000, found 0");
  CHECK(message("{elastic_transform_chance: 0.1}", 2) ==
        "test.yaml:1: both/elastic_transform_chance: needs two images of one size, and one of them "
        "is 2 times as large: they can be mirrored and turned");
  CHECK(message("{v_flip_chance: 1, rot90_chance: 1}", 2) == "no error");
}

}  // namespace joint_augmentations_test
}  // namespace stepop
