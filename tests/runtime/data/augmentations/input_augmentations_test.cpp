#include "runtime/data/augmentations/input_augmentations.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/pictures/webp.h"
#include "runtime/core/system/optional_library.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"
#include "tests/places.h"

namespace stepop {
namespace input_augmentations_test {

Config input(const std::string& yaml) {
  return Config(parse_yaml("input: " + yaml, {"test.yaml", 0})).at("input");
}

/// [channels, 24, 20] in [-1, 1].
at::Tensor waves(int64_t channels) {
  return at::sin(at::arange(channels * 24 * 20, at::kFloat).reshape({channels, 24, 20}) / 37);
}

at::Tensor changed(const std::string& yaml, const at::Tensor& image, uint64_t seed = 0) {
  Random random(seed);
  return InputAugmentations(input(yaml)).apply(image, random);
}

bool is_close(const at::Tensor& a, const at::Tensor& b, double tolerance = 1e-5) {
  return (a - b).abs().max().item<double>() < tolerance;
}

/// One pixel.
at::Tensor colour(double red, double green, double blue) {
  return at::tensor({red, green, blue}).to(at::kFloat).reshape({3, 1, 1});
}

TEST_CASE("brightness, contrast, saturation, hue, gamma and grey have their closed forms") {
  CHECK(is_close(with_brightness(colour(0.2, 0.4, 0.9), 1.5), colour(0.3, 0.6, 1)));
  const double grey = 0.299 * 0.2 + 0.587 * 0.4 + 0.114 * 0.9;
  const auto from_grey = [&](double value, double factor) {
    return grey + factor * (value - grey);
  };
  // A single pixel's grey is the image's mean, too.
  for (const double factor : {0.0, 0.5, 1.2}) {
    const at::Tensor expected =
        colour(from_grey(0.2, factor), from_grey(0.4, factor), from_grey(0.9, factor));
    CHECK(is_close(with_contrast(colour(0.2, 0.4, 0.9), factor), expected.clamp(0, 1)));
    CHECK(is_close(with_saturation(colour(0.2, 0.4, 0.9), factor), expected.clamp(0, 1)));
  }
  const at::Tensor some = colour(0.9, 0.2, 0.4);
  CHECK(is_close(with_hue(some, 1.0 / 3), colour(0.4, 0.9, 0.2)));
  CHECK(is_close(with_hue(some, -1.0 / 3), colour(0.2, 0.4, 0.9)));
  CHECK(is_close(with_hue(some, 0.5), colour(0.2, 0.9, 0.7)));
  CHECK(is_close(with_hue(colour(1, 0, 0), 1.0 / 6), colour(1, 1, 0)));
  CHECK(is_close(with_hue(with_hue(some, 0.17), -0.17), some));
  CHECK(is_close(with_hue(colour(0.3, 0.3, 0.3), 0.4), colour(0.3, 0.3, 0.3)));

  CHECK(is_close(with_gamma(colour(0, 0.25, 1), 0.5), colour(0, 0.5, 1)));
  CHECK(is_close(in_grey(colour(0.2, 0.4, 0.9), GreyMethod::kWeightedAverage),
                 colour(grey, grey, grey)));
  CHECK(is_close(in_grey(colour(0.2, 0.4, 0.9), GreyMethod::kAverage), colour(0.5, 0.5, 0.5)));
  CHECK(is_close(in_grey(colour(0.2, 0.4, 0.9), GreyMethod::kDesaturation),
                 colour(0.55, 0.55, 0.55)));
  CHECK(is_close(in_grey(colour(0.2, 0.4, 0.9), GreyMethod::kMax), colour(0.9, 0.9, 0.9)));
}

TEST_CASE("noise has its deviation, and a JPEG of quality 100 changes little") {
  const at::Tensor half = at::full({3, 100, 100}, 0.5, at::kFloat);
  Random random(1);
  const at::Tensor noise = with_noise(half, 0.1, random) - 0.5;
  CHECK(noise.std().item<double>() == doctest::Approx(0.1).epsilon(0.03));
  CHECK(std::abs(noise.mean().item<double>()) < 0.003);
  const at::Tensor image = (waves(3) + 1) / 2;
  const auto loss = [&](int quality) {
    return (through_jpeg(image, quality) - image).abs().mean().item<double>();
  };
  CHECK(loss(100) < 0.03);
  CHECK(loss(5) > 2 * loss(100));
}

/// A stored picture [H, W, 3] as an image [3, H, W] in [0, 1].
at::Tensor image_of(const at::Tensor& bytes) {
  return bytes.permute({2, 0, 1}).to(at::kFloat).div(255).contiguous();
}

/// Calls `check(name, image, stored)` for each stored result of albumentations.
template <class Check>
void for_stored(const std::string& kind, const Check& check) {
  const State stored =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/augmentations/albumentations.safetensors")
          .tensors;
  for (const auto& [name, bytes] : stored) {
    const std::string of = name.substr(2);
    if (!of.starts_with(kind)) continue;
    CAPTURE(name);
    check(of, image_of(stored.at(name.substr(0, 2) + "image")), image_of(bytes));
  }
}

TEST_CASE("each way to grey is that of albumentations, up to its rounding to bytes") {
  const std::map<std::string, GreyMethod> methods = {
      {"weighted_average", GreyMethod::kWeightedAverage},
      {"average", GreyMethod::kAverage},
      {"desaturation", GreyMethod::kDesaturation},
      {"max", GreyMethod::kMax},
      {"from_lab", GreyMethod::kFromLab},
      {"pca", GreyMethod::kPca}};
  for (const auto& [name, method] : methods) {
    for_stored(name, [&, which = method](const std::string&, const at::Tensor& image,
                                         const at::Tensor& grey) {
      CHECK((in_grey(image, which) - grey).abs().max().item<double>() < 1.1 / 255);
    });
  }
  CHECK(in_grey(at::full({3, 4, 4}, 0.3, at::kFloat), GreyMethod::kPca).abs().max().item<double>() <
        1e-6);
}

TEST_CASE("a WebP loses what OpenCV's loses") {
  for_stored("webp_", [](const std::string& name, const at::Tensor& image, const at::Tensor& webp) {
    const at::Tensor ours = through_webp(image, std::stoi(name.substr(5)));
    CHECK((ours - webp).abs().mean().item<double>() < 1.0 / 255);
    CHECK((ours - image).abs().mean().item<double>() > 0.5 / 255);
  });
  const at::Tensor grey = at::full({1, 30, 20}, 0.5, at::kFloat);
  CHECK(is_close(through_webp(grey, 80), grey, 0.02));
  const std::string always =
      "{compression_chance: 1, compression_type: webp, "
      "compression_quality_min: 10, compression_quality_max: 10}";
  const at::Tensor changed_waves = changed(always, waves(3));
  CHECK(is_close(changed_waves, through_webp((waves(3) + 1) / 2, 10) * 2 - 1));
  CHECK(
      message_of([] {
        through_webp(at::zeros({3, 1, 20'000}, at::kFloat), 50);
      }).starts_with("a WebP has 3 channels and at most 16383 x 16383 pixels, found 3 and 20000"));
}

TEST_CASE("motion blurs along a line") {
  std::set<int64_t> lengths;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const at::Tensor kernel = motion_kernel(7, random);
    CHECK(kernel.sum().item<double>() == doctest::Approx(1));
    lengths.insert((kernel > 0).sum().item<int64_t>());
    CHECK((kernel > 0).sum().item<int64_t>() <= 7);
  }
  CHECK(lengths.size() > 2);
  at::Tensor kernel = at::zeros({3, 3}, at::kFloat);
  kernel[1].fill_(1.0 / 3);
  const at::Tensor ramp = at::arange(5, at::kFloat).expand({2, 4, 5});
  CHECK(is_close(with_motion(ramp, kernel)[1][3],
                 at::tensor({1.0 / 3, 1.0, 2.0, 3.0, 11.0 / 3}).to(at::kFloat)));
}

TEST_CASE("input augmentations change what they are told to, within the range") {
  for (const std::string name :
       {"colorjitter", "gaussnoise", "motionblur", "randgamma", "grayscale", "compression"}) {
    CAPTURE(name);
    const std::string always = "{" + name + "_chance: 1}";
    for (const int64_t channels : {1, 2, 3, 4}) {
      CAPTURE(channels);
      const at::Tensor image = waves(channels);
      const at::Tensor copy = image.clone();
      const at::Tensor result = changed(always, image);
      CHECK(image.equal(copy));
      CHECK(result.sizes() == image.sizes());
      CHECK((result.abs() <= 1.00001).all().item<bool>());
      CHECK(result.equal(changed(always, image)));
      if (channels == 3) CHECK_FALSE(is_close(result, image, 1e-3));
      if (channels == 4) CHECK(result[3].equal(image[3]));
    }
    int64_t times = 0;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      times += !changed("{" + name + "_chance: 0.3}", waves(3), seed).equal(waves(3));
    }
    CHECK(times > 10);
    CHECK(times < 50);
  }
  CHECK(is_close(changed("{randgamma_chance: 1, randgamma_min: 200, randgamma_max: 200}", waves(3)),
                 ((waves(3) + 1) / 2).square() * 2 - 1));
  const at::Tensor grey = changed("{grayscale_chance: 1}", waves(3));
  CHECK(grey[0].equal(grey[2]));
  CHECK(changed("{}", waves(3)).equal(waves(3)));
}

TEST_CASE("mistakes in input augmentations are reported at their place") {
  const auto message = [](const std::string& yaml) {
    return message_of([&] { const InputAugmentations augmentations(input(yaml)); });
  };
  CHECK(message("{grayscale_method: lab}") ==
        "test.yaml:1: input/grayscale_method: expected weighted_average, average, desaturation, "
        "max, from_lab or pca, found \"lab\"");
  CHECK(message("{compression_type: gif}") ==
        "test.yaml:1: input/compression_type: expected jpeg or webp, found \"gif\"");
  CHECK(message_of([] {
          OptionalLibrary("libnowhere.so.7", "GIF needs libnowhere");
        }).starts_with("GIF needs libnowhere: libnowhere.so.7: "));
  CHECK(message("{motionblur_limit: 2}").find("input/motionblur_limit: ") != std::string::npos);
  CHECK(message("{compression_quality_min: 0}") ==
        "test.yaml:1: input/compression_quality_min: expected 1 to 100, found 0");
  CHECK(message("{gaussnoise_min: 0.5}") ==
        "test.yaml:1: input/gaussnoise_max: expected gaussnoise_min, 0.5, or more, found 0.44");
  CHECK(
      message("{colorjitter_chance: often}").find("input/colorjitter_chance: expected a number") !=
      std::string::npos);
}

}  // namespace input_augmentations_test
}  // namespace stepop
