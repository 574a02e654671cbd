// The expected values are torchvision's: tests/data/augmentations/make_torchvision.py.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/augmentations/colour.h"
#include "runtime/data/augmentations/geometry.h"
#include "tests/dataset_of.h"
#include "tests/places.h"

namespace stepop {
namespace torchvision_test {

const State& expected() {
  static const State state =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/augmentations/torchvision.safetensors")
          .tensors;
  return state;
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// What `change` makes of torchvision's picture, mask, boxes and keypoints.
struct Changed {
  at::Tensor image = expected().at("image") * 2 - 1;
  at::Tensor mask = expected().at("mask");
  at::Tensor boxes = expected().at("boxes");
  at::Tensor points = expected().at("points");

  template <class Change>
  explicit Changed(const Change& change) {
    Scene scene;
    scene.images = {{"image", &image}};
    scene.masks = {{"mask", &mask}};
    scene.boxes = {{"boxes", &boxes}};
    scene.keypoints = {{"points", &points}};
    change(scene);
  }

  void check(const std::string& name) const {
    CAPTURE(name);
    CHECK(difference((image + 1) / 2, expected().at(name + "/image")) < 1e-5);
    CHECK(difference(mask, expected().at(name + "/mask")) == 0);
    CHECK(difference(boxes, expected().at(name + "/boxes")) < 1e-4);
    CHECK(difference(points, expected().at(name + "/points")) < 1e-4);
  }
};

void check_affine(const std::string& name, const AffineOptions& options,
                  PixelPosition middle = {8.5, 6}) {
  Changed([&](Scene& scene) { transform(scene, affine(options, middle), -1); }).check(name);
}

TEST_CASE("pictures, masks, boxes and keypoints move as torchvision moves them") {
  check_affine("turned", {.degrees = 20});
  check_affine("moved", {.shift = {3, -2}});
  check_affine("enlarged", {.scale = 1.27});
  check_affine("sheared", {.shear_x = 10, .shear_y = -5});
  check_affine("all", {.degrees = -35, .shift = {2, 1}, .scale = 0.8, .shear_x = 12});
  check_affine("corner", {.shear_x = std::atan(0.19) * 180 / 3.14159265358979323846}, {-0.5, -0.5});
  Changed([](Scene& scene) {
    transform(scene,
              // In torchvision, (0, 0) is the first pixel's corner.
              homography_between({{{-0.5, -0.5}, {16.5, -0.5}, {16.5, 11.5}, {-0.5, 11.5}}},
                                 {{{1.5, 0.5}, {13.5, 1.5}, {16.5, 9.5}, {2.5, 10.5}}}),
              -1);
  }).check("perspective");
  Changed([](Scene& scene) { mirror(scene, true); }).check("mirrored");
  Changed([](Scene& scene) { mirror(scene, false); }).check("upside");
  Changed([](Scene& scene) { crop(scene, 3, -2, 8, 9, -1); }).check("part");
  const Changed smaller([](Scene& scene) { resize(scene, 7, 5); });
  CHECK(difference((smaller.image + 1) / 2, expected().at("smaller/image")) < 1e-5);
  const Changed larger([](Scene& scene) { resize(scene, 20, 31); });
  CHECK(difference((larger.image + 1) / 2, expected().at("larger/image")) < 1e-5);
  CHECK(difference(larger.boxes, expected().at("larger/boxes")) < 1e-4);
}

TEST_CASE("CenterCrop begins where torchvision's does") {
  // torchvision 0.28: v2.CenterCrop(size)(torch.arange(height).view(1, height, 1).expand(1, height,
  // size))[0, 0, 0]; a padding in front is the number of its rows, negative.
  const int64_t cases[][3] = {{10, 7, 2},    {10, 8, 1},    {11, 10, 0},    {12, 7, 2},
                              {14, 7, 4},    {235, 224, 6}, {256, 224, 16}, {239, 224, 8},
                              {225, 224, 0}, {7, 10, -1},   {7, 12, -2},    {224, 224, 0}};
  for (const auto& [height, size, begin] : cases) {
    CAPTURE(height);
    CAPTURE(size);
    const AugmentationList list(
        Config(parse_yaml(fmt::format("list: [{{class: CenterCrop, size: {}}}]", size),
                          {"test.yaml", 0})),
        "list");
    at::Tensor image = at::zeros({1, height, size});
    at::Tensor points = at::zeros({1, 2});
    Scene scene;
    scene.images = {{"image", &image}};
    scene.keypoints = {{"points", &points}};
    Random random(0);
    list.apply(scene, random);
    CHECK(points[0][1].item<float>() == static_cast<float>(-begin));
    CHECK(points[0][0].item<float>() == 0);
  }
}

TEST_CASE("colours change as torchvision changes them") {
  const at::Tensor image = expected().at("image");
  const auto check = [](const std::string& name, const at::Tensor& changed,
                        double tolerance = 1e-5) {
    CAPTURE(name);
    CHECK(difference(changed, expected().at("colour/" + name)) < tolerance);
  };
  check("brightness", with_brightness(image, 1.4));
  check("contrast", with_contrast(image, 0.6), 1e-4);
  check("saturation", with_saturation(image, 1.7), 1e-3);
  check("hue", with_hue(image, 0.2));
  check("grey", in_grey(image, GreyMethod::kWeightedAverage), 1e-3);
  check("posterized", with_posterization(image, 3));
  check("solarized", with_solarization(image, 0.6));
  check("autocontrast", with_autocontrast(image));
  check("equalized", with_equalization(image));
  check("sharper", with_sharpness(image, 1.8));
  check("smoother", with_sharpness(image, 0.3));
  check("blurred", with_blur(image, 5, 1.3));
}

/// The mean and the standard deviation.
std::pair<double, double> moments(const std::vector<double>& numbers) {
  double sum = 0;
  double squares = 0;
  for (const double number : numbers) {
    sum += number;
    squares += number * number;
  }
  const auto count = static_cast<double>(numbers.size());
  return {sum / count, std::sqrt(squares / count - sum * sum / count / count)};
}

constexpr int kDraws = 4000;

TEST_CASE("RandomResizedCrop draws parts as torchvision does") {
  const AugmentationList list(
      Config(parse_yaml("list: [{class: RandomResizedCrop, size: 8}]", {"test.yaml", 0})), "list");
  Random random(1);
  std::vector<double> areas, ratios, rows, columns;
  for (int i = 0; i < kDraws; ++i) {
    at::Tensor image = at::zeros({1, 40, 60});
    // The keypoints say where the part was.
    at::Tensor points = at::zeros({2, 2});
    points[1].fill_(10);
    Scene scene;
    scene.images = {{"image", &image}};
    scene.keypoints = {{"points", &points}};
    list.apply(scene, random);
    const auto place = points.accessor<float, 2>();
    const double width = 80 / (place[1][0] - place[0][0]);
    const double height = 80 / (place[1][1] - place[0][1]);
    areas.push_back(width * height / 2400);
    ratios.push_back(std::log(width / height));
    columns.push_back(0.5 * width - (place[0][0] + 0.5) * width / 8 + 0.5);
    rows.push_back(0.5 * height - (place[0][1] + 0.5) * height / 8 + 0.5);
  }
  const auto means = expected().at("means/crop").accessor<float, 1>();
  CHECK(moments(areas).first == doctest::Approx(means[0]).epsilon(0.03));
  CHECK(moments(areas).second == doctest::Approx(means[1]).epsilon(0.03));
  CHECK(std::abs(moments(ratios).first - means[2]) < 0.01);
  CHECK(moments(ratios).second == doctest::Approx(means[3]).epsilon(0.03));
  CHECK(moments(rows).first == doctest::Approx(means[4]).epsilon(0.02));
  CHECK(moments(columns).first == doctest::Approx(means[5]).epsilon(0.02));
}

TEST_CASE("RandomErasing draws rectangles as torchvision does") {
  const AugmentationList list(
      Config(parse_yaml("list: [{class: RandomErasing, p: 1, value: 1}]", {"test.yaml", 0})),
      "list");
  Random random(1);
  std::vector<double> areas, ratios;
  for (int i = 0; i < kDraws; ++i) {
    at::Tensor image = at::zeros({1, 40, 60});
    Scene scene;
    scene.images = {{"image", &image}};
    list.apply(scene, random);
    const double rows = image[0].sum(1).gt(0).sum().item<double>();
    const double columns = image[0].sum(0).gt(0).sum().item<double>();
    CHECK(image.sum().item<double>() == rows * columns);
    areas.push_back(rows * columns / 2400);
    if (rows > 0) ratios.push_back(std::log(rows / columns));
  }
  const at::Tensor means_tensor = expected().at("means/erasing").to(at::kDouble);
  const auto means = means_tensor.accessor<double, 1>();
  CHECK(moments(areas).first == doctest::Approx(means[0]).epsilon(0.03));
  CHECK(moments(areas).second == doctest::Approx(means[1]).epsilon(0.04));
  CHECK(std::abs(moments(ratios).first - means[2]) < 0.03);
}

TEST_CASE("CutMix leaves as much of an image as torchvision's does") {
  const auto dataset = dataset_of(
      "{class: MixedImages, mixup: 0, classes: 10, dataset: {class: Synthetic, size: 2, shape: [1, "
      "40, 60]}}");
  std::vector<double> shares;
  const std::vector<int64_t> indices = {0, 1};
  Random seeds(1);
  const at::Tensor original = dataset->get(0, seeds).tensors.at("image");
  for (int i = 0; i < kDraws; ++i) {
    std::vector<Random> randoms = {Random(seeds()), Random(seeds())};
    const Batch batch = load_batch(*dataset, indices, randoms);
    const at::Tensor kept = batch["image"][0].eq(original);
    shares.push_back(kept.to(at::kDouble).mean().item<double>());
  }
  const auto means = expected().at("means/cutmix").accessor<float, 1>();
  CHECK(moments(shares).first == doctest::Approx(means[0]).epsilon(0.02));
  CHECK(moments(shares).second == doctest::Approx(means[1]).epsilon(0.04));
}

}  // namespace torchvision_test
}  // namespace stepop
