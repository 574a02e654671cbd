#include "runtime/data/augmentations/augmentation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace augmentation_test {

AugmentationList list_of(const std::string& yaml) {
  return {Config(parse_yaml("data: {list: " + yaml + "}", {"test.yaml", 0})).at("data"), "list"};
}

/// A bright disk, with its mask, its box and its middle.
struct Disk {
  at::Tensor image;
  at::Tensor mask;
  at::Tensor boxes = at::tensor({21.0F, 13.0F, 30.0F, 22.0F}).reshape({1, 4});
  at::Tensor points = at::tensor({25.0F, 17.0F, 0.5F}).reshape({1, 3});
  Scene scene;

  Disk() {
    const at::Tensor x = at::arange(64, at::kFloat).reshape({1, 1, 64}) - 25;
    const at::Tensor y = at::arange(48, at::kFloat).reshape({1, 48, 1}) - 17;
    const at::Tensor inside = (x * x + y * y).le(4.2 * 4.2);
    image = inside.to(at::kFloat).expand({3, 48, 64}).contiguous();
    mask = inside[0].to(at::kLong);
    scene.images = {{"image", &image}};
    scene.masks = {{"mask", &mask}};
    scene.boxes = {{"boxes", &boxes}};
    scene.keypoints = {{"points", &points}};
  }
};

/// The middle of the pixels of which `is_inside` is true: x, y.
std::array<double, 2> middle_of(const at::Tensor& is_inside) {
  const at::Tensor places = is_inside.nonzero().to(at::kDouble).mean(0);
  return {places[1].item<double>(), places[0].item<double>()};
}

TEST_CASE("images, masks, boxes and keypoints move together, whatever the change of geometry") {
  for (const std::string change :
       {"RandomHorizontalFlip, p: 1", "RandomVerticalFlip, p: 1", "RandomRotate90",
        "Resize, size: [72, 80]", "CenterCrop, size: [40, 70]", "RandomCrop, size: 48, padding: 4",
        "RandomResizedCrop, size: [60, 60], scale: [0.7, 1]",
        "RandomAffine, degrees: 180, translate: [0.1, 0.1], scale: [0.8, 1.3], shear: 10",
        "RandomAffine, degrees: [30, 40], fill: repeat", "RandomPerspective, p: 1",
        "ElasticTransform, alpha: 60", "OpticalDistortion, strength: [-0.4, 0.4]",
        "OpticalDistortion, strength: [-0.3, 0.3], mode: fisheye"}) {
    const AugmentationList list = list_of("[{class: " + change + "}]");
    int64_t whole = 0;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      CAPTURE(change);
      CAPTURE(seed);
      Disk disk;
      Random random(seed);
      list.apply(disk.scene, random);
      const at::Tensor is_inside = disk.mask.eq(1);
      REQUIRE((disk.mask.scalar_type() == at::kLong));
      REQUIRE(disk.image.size(1) == disk.mask.size(0));
      REQUIRE(disk.image.size(2) == disk.mask.size(1));
      const auto box = values_of<float>(disk.boxes);
      const auto point = values_of<float>(disk.points);
      CHECK(point[2] == 0.5F);
      const bool is_whole = box[0] > 1 && box[1] > 1 && box[2] < float(disk.mask.size(1)) - 1 &&
                            box[3] < float(disk.mask.size(0)) - 1;
      if (!is_whole) continue;  // the border has cut the disk
      ++whole;
      const auto mask = middle_of(is_inside);
      const auto image = middle_of(disk.image[0].gt(0.5));
      for (const size_t axis : {0, 1}) {
        CHECK(std::abs(mask[axis] - point[axis]) < 0.8);
        CHECK(std::abs(image[axis] - point[axis]) < 0.8);
      }
      const at::Tensor pixels = is_inside.nonzero();  // [N, 2]: y, x
      const auto least = values_of<int64_t>(std::get<0>(pixels.min(0)));
      const auto most = values_of<int64_t>(std::get<0>(pixels.max(0)));
      CHECK(box[0] <= float(least[1]) + 0.6F);
      CHECK(box[1] <= float(least[0]) + 0.6F);
      CHECK(box[2] >= float(most[1]) + 0.4F);
      CHECK(box[3] >= float(most[0]) + 0.4F);
    }
    CHECK(whole >= 10);
  }
}

TEST_CASE("beyond the border masks are left out of the loss, and a box that is gone has no area") {
  Disk disk;
  Random random(0);
  list_of("[{class: CenterCrop, size: [48, 100]}]").apply(disk.scene, random);
  CHECK(disk.mask.narrow(1, 0, 18).eq(-100).all().item<bool>());
  CHECK(disk.mask.narrow(1, 18, 64).ge(0).all().item<bool>());
  CHECK(disk.image.narrow(2, 0, 18).eq(-1).all().item<bool>());
  list_of("[{class: RandomCrop, size: [48, 20], padding: 0}]").apply(disk.scene, random);
  Disk other;
  AugmentationList gone = list_of("[{class: CenterCrop, size: [10, 10]}]");
  gone.apply(other.scene, random);
  const auto box = values_of<float>(other.boxes);
  CHECK(box[2] - box[0] > 0);
  CHECK(box[3] - box[1] == doctest::Approx(3));
  Disk third;
  list_of("[{class: RandomAffine, translate: [0, 0], scale: [50, 50]}]").apply(third.scene, random);
  const auto left = values_of<float>(third.boxes);
  CHECK((left[2] - left[0]) * (left[3] - left[1]) == 0);
}

TEST_CASE("the same numbers make the same change, and a chance of 0 makes none") {
  const std::string all =
      "[{class: RandomResizedCrop, size: 32}, RandomHorizontalFlip, {class: RandAugment, num_ops: "
      "3}, {class: ColorJitter, brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}, "
      "RandomGrayscale, GaussianBlur, GaussianNoise, MotionBlur, RandomGamma, JPEG, CoarseDropout, "
      "{class: RandomErasing, value: random}]";
  const AugmentationList list = list_of(all);
  const auto changed = [&](uint64_t seed) {
    Disk disk;
    const at::Tensor before = disk.image;
    const at::Tensor kept = before.clone();
    Random random(seed);
    list.apply(disk.scene, random);
    CHECK(at::equal(before, kept));  // a dataset may own it
    return disk.image;
  };
  CHECK(at::equal(changed(5), changed(5)));
  CHECK_FALSE(at::equal(changed(5), changed(6)));
  Disk disk;
  Random random(0);
  list_of("[{class: JPEG, p: 0}, {class: RandomVerticalFlip, p: 0}]").apply(disk.scene, random);
  CHECK(at::equal(disk.image, Disk().image));
}

TEST_CASE("every change of RandAugment keeps shapes, types and the range") {
  const AugmentationList list =
      list_of("[{class: RandAugment, num_ops: 1, magnitude: 30, fill: repeat}]");
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Disk disk;
    Random random(seed);
    list.apply(disk.scene, random);
    CHECK(disk.image.sizes() == at::IntArrayRef{3, 48, 64});
    CHECK(disk.image.abs().max().item<float>() <= 1);
    CHECK((disk.mask.scalar_type() == at::kLong));
  }
}

TEST_CASE("`only` changes some keys, all images change alike, and `swap` exchanges keypoints") {
  Disk disk;
  at::Tensor second = disk.image.clone();
  disk.scene.images.push_back({"second", &second});
  Random random(0);
  list_of("[{class: ColorJitter, brightness: [0.2, 0.3], only: [image]}]")
      .apply(disk.scene, random);
  CHECK(at::equal(second, Disk().image));
  CHECK_FALSE(at::equal(disk.image, second));
  disk.image = second;
  list_of("[{class: ColorJitter, brightness: 0.5}, {class: RandomErasing, p: 1}, CoarseDropout]")
      .apply(disk.scene, random);
  CHECK(at::equal(disk.image, second));

  disk.points = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}).reshape({3, 2});
  list_of("[{class: RandomHorizontalFlip, p: 1, swap: [[0, 2]]}]").apply(disk.scene, random);
  CHECK(values_of<float>(disk.points) == std::vector<float>{58, 6, 60, 4, 62, 2});
}

/// The page's example, runtime/data/views/README.md.
class TestDarker : public Augmentation {
 public:
  explicit TestDarker(const Config& params) : most_(params.get("most", 0.5)) {}
  void apply(Scene& scene, Random& random) const override {
    const double factor = 1 - most_ * random.uniform();
    recolour(scene, [&](const at::Tensor& image) { return image * factor; });
  }

 private:
  double most_;
};
STEPOP_REGISTER_AUGMENTATION(TestDarker, {"For tests.", {{"most", "0.5", "1: up to black"}}});

TEST_CASE("an augmentation of a user's own stands in a list") {
  Disk disk;
  Random random(0);
  list_of("[{class: TestDarker, most: 0.3}]").apply(disk.scene, random);
  const double white = disk.image.max().item<double>();  // 1 before
  CHECK(white < 1);
  CHECK(white > 2 * 0.7 - 1);
  CHECK(disk.image.min().item<double>() == doctest::Approx(white / 2 - 0.5));  // 0 before
}

TEST_CASE("mistakes in a list are named with their place") {
  const auto message = [](const std::string& yaml) {
    return message_of([&] {
      Disk disk;
      Random random(0);
      list_of(yaml).apply(disk.scene, random);
    });
  };
  CHECK(message("RandomHorizontalFlip") ==
        "test.yaml:1: data/list: expected a list of augmentations, such as [RandomHorizontalFlip, "
        "{class: RandomErasing, p: 0.25}], found \"RandomHorizontalFlip\"");
  CHECK(message("[RandomHorizontalFlop]").find("RandomHorizontalFlip") != std::string::npos);
  CHECK(message("[{class: JPEG, p: 2}]") ==
        "test.yaml:1: data/list/0/p: expected a chance, 0 to 1, found 2");
  CHECK(message("[{class: RandomCrop, size: 100}]") ==
        "data/list/0 (RandomCrop): size: 100 rows, but the image has 48 and a padding of 0");
  CHECK(message("[{class: GaussianBlur, kernel_size: 4}]") ==
        "test.yaml:1: data/list/0/kernel_size: expected an odd number, found 4");
  CHECK(message("[{class: RandomAffine, degrees: 500}]") ==
        "test.yaml:1: data/list/0/degrees: expected 0 to 180, or [lowest, highest], found 500");
  CHECK(message("[{class: RandomResizedCrop, size: [1, 2, 3]}]") ==
        "test.yaml:1: data/list/0/size: expected a side or [height, width], 1 to 32768, found "
        "[1, 2, 3]");
  CHECK(message("[{class: RandomAffine, fill: white}]").find("data/list/0/fill: expected ") !=
        std::string::npos);
  CHECK(message("[{class: RandomHorizontalFlip, p: 1, swap: [[0, 7]]}]") ==
        "data/list/0 (RandomHorizontalFlip): swap: [0, 7], but \"points\" has 1 keypoints, counted "
        "from 0");
}

}  // namespace augmentation_test
}  // namespace stepop
