#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/data/augmentations/augmentation.h"
#include "runtime/data/augmentations/chance.h"
#include "runtime/data/augmentations/colour.h"
#include "runtime/data/augmentations/holes.h"

namespace stepop {

namespace {

class ColorJitter : public Augmentation {
 public:
  explicit ColorJitter(const Config& params)
      : ranges_{.brightness = get_spread(params, "brightness", 1, kFactors),
                .contrast = get_spread(params, "contrast", 1, kFactors),
                .saturation = get_spread(params, "saturation", 1, kFactors),
                .hue = get_spread(params, "hue", 0, {.low = -0.5, .high = 0.5})} {}

  void apply(Scene& scene, Random& random) const override {
    recolour(scene, draw_jitter(ranges_, random));
  }

 private:
  static constexpr NumberRange kFactors{.low = 0, .high = 100};
  JitterRanges ranges_;
};

class RandomGrayscale : public Augmentation {
 public:
  explicit RandomGrayscale(const Config&) {}
  double usual_chance() const override { return 0.1; }
  void apply(Scene& scene, Random&) const override {
    recolour(scene,
             [](const at::Tensor& image) { return in_grey(image, GreyMethod::kWeightedAverage); });
  }
};

class GaussianBlur : public Augmentation {
 public:
  explicit GaussianBlur(const Config& params)
      : size_(params.get_between("kernel_size", 1, 255, 5)),
        sigma_(get_range(params, "sigma", {.low = 0.1, .high = 2}, {.low = 1e-3, .high = 1000})) {
    if (size_ % 2 == 0) {
      throw params.error("kernel_size", fmt::format("expected an odd number, found {}", size_));
    }
  }

  void apply(Scene& scene, Random& random) const override {
    const double deviation = sigma_.draw(random);
    if (size_ / 2 >= std::min(scene.height(), scene.width())) {
      throw Error(fmt::format("kernel_size: {} needs images of {} pixels and more, found {} x {}",
                              size_, size_ / 2 + 1, scene.height(), scene.width()));
    }
    recolour(scene, [&](const at::Tensor& image) { return with_blur(image, size_, deviation); });
  }

 private:
  int64_t size_;
  NumberRange sigma_;
};

class GaussianNoise : public Augmentation {
 public:
  explicit GaussianNoise(const Config& params)
      : sigma_(get_range(params, "sigma", {.low = 0.1, .high = 0.1}, {.low = 0, .high = 1})) {}
  void apply(Scene& scene, Random& random) const override {
    const double deviation = sigma_.draw(random);
    recolour(scene, [&](const at::Tensor& image) { return with_noise(image, deviation, random); });
  }

 private:
  NumberRange sigma_;
};

class MotionBlur : public Augmentation {
 public:
  explicit MotionBlur(const Config& params) : limit_(params.get_between("limit", 3, 255, 7)) {}
  void apply(Scene& scene, Random& random) const override {
    const at::Tensor kernel = motion_kernel(3 + 2 * random.below((limit_ - 3) / 2 + 1), random);
    recolour(scene, [&](const at::Tensor& image) { return with_motion(image, kernel); });
  }

 private:
  int64_t limit_;
};

class RandomGamma : public Augmentation {
 public:
  explicit RandomGamma(const Config& params)
      : gamma_(get_range(params, "gamma", {.low = 0.8, .high = 1.2}, {.low = 0.01, .high = 100})) {}
  void apply(Scene& scene, Random& random) const override {
    const double gamma = gamma_.draw(random);
    recolour(scene, [&](const at::Tensor& image) { return with_gamma(image, gamma); });
  }

 private:
  NumberRange gamma_;
};

class JPEG : public Augmentation {
 public:
  explicit JPEG(const Config& params)
      : quality_(get_range(params, "quality", {.low = 50, .high = 100}, {.low = 1, .high = 100})) {}
  void apply(Scene& scene, Random& random) const override {
    const auto quality = static_cast<int>(quality_.draw_whole(random));
    recolour(scene, [&](const at::Tensor& image) { return through_jpeg(image, quality); });
  }

 private:
  NumberRange quality_;
};

class CoarseDropout : public Augmentation {
 public:
  explicit CoarseDropout(const Config& params)
      : options_{
            .count = get_range(params, "holes", {.low = 1, .high = 2}, {.low = 1, .high = 1000}),
            .heights = get_range(params, "height", {.low = 0.1, .high = 0.2}, kShares),
            .widths = get_range(params, "width", {.low = 0.1, .high = 0.2}, kShares)} {}
  void apply(Scene& scene, Random& random) const override { drop_holes(scene, options_, random); }

 private:
  static constexpr NumberRange kShares{.low = 0, .high = 1};
  HoleOptions options_;
};

/// A rectangle is erased (Zhong et al., 2017), as in torchvision.
class RandomErasing : public Augmentation {
 public:
  explicit RandomErasing(const Config& params)
      : scale_(get_range(params, "scale", {.low = 0.02, .high = 0.33}, {.low = 0, .high = 1})),
        ratio_(get_range(params, "ratio", {.low = 0.3, .high = 3.3}, {.low = 1e-3, .high = 1e3})) {
    const Value* value = params.has("value") ? params.peek("value") : nullptr;
    is_noise_ = value != nullptr && value->is_text() && value->as_text() == "random";
    if (is_noise_) return;
    value_ = params.get("value", 0.0);
    if (value_ >= -1 && value_ <= 1) return;
    throw params.error("value", fmt::format("expected -1 to 1, or random, found {}", value_));
  }

  double usual_chance() const override { return 0.5; }

  void apply(Scene& scene, Random& random) const override {
    constexpr int kTries = 10;
    const auto area = static_cast<double>(scene.height() * scene.width());
    const NumberRange logarithms{.low = std::log(ratio_.low), .high = std::log(ratio_.high)};
    for (int i = 0; i < kTries; ++i) {
      const double erased = area * scale_.draw(random);
      const double ratio = std::exp(logarithms.draw(random));
      const auto height = static_cast<int64_t>(std::round(std::sqrt(erased * ratio)));
      const auto width = static_cast<int64_t>(std::round(std::sqrt(erased / ratio)));
      if (height >= scene.height() || width >= scene.width()) continue;
      const int64_t top = random.below(scene.height() - height + 1);
      const int64_t left = random.below(scene.width() - width + 1);
      for (const SceneValue& image : scene.images) {
        *image.value = image.value->clone();
        at::Tensor part = image.value->narrow(1, top, height).narrow(2, left, width);
        if (is_noise_) {
          const at::Generator generator = at::detail::createCPUGenerator(random());
          part.copy_(at::randn(part.sizes(), generator, at::kFloat));
        } else {
          part.fill_(value_);
        }
      }
      return;
    }
  }

 private:
  NumberRange scale_;
  NumberRange ratio_;
  bool is_noise_ = false;
  double value_ = 0;
};

STEPOP_REGISTER_AUGMENTATION(
    ColorJitter,
    {"Brightness, contrast, saturation and hue change, in any order. A number n: factors of 1 - n "
     "to 1 + n; or [lowest, highest].",
     {{"brightness", "0.0", "the spread of the factor"},
      {"contrast", "0.0", "the spread of the factor"},
      {"saturation", "0.0", "the spread of the factor"},
      {"hue", "0.0", "up to this share of the colour circle, 0 to 0.5"}}});
STEPOP_REGISTER_AUGMENTATION(RandomGrayscale,
                             {"Grey, with as many channels.", {{"p", "0.1", "the chance"}}});
STEPOP_REGISTER_AUGMENTATION(
    GaussianBlur, {"Blurred by a Gaussian.",
                   {{"kernel_size", "5", "pixels, an odd number"},
                    {"sigma", "[0.1, 2]", "standard deviation, lowest and highest, in pixels"}}});
STEPOP_REGISTER_AUGMENTATION(GaussianNoise,
                             {"Normal noise.",
                              {{"sigma", "[0.1, 0.1]",
                                "standard deviation, lowest and highest, for a range of 0 to 1"}}});
STEPOP_REGISTER_AUGMENTATION(MotionBlur,
                             {"Blurred along a line of 3 pixels and more, as in albumentations.",
                              {{"limit", "7", "the most pixels"}}});
STEPOP_REGISTER_AUGMENTATION(RandomGamma, {"Values, 0 to 1, to the power of gamma.",
                                           {{"gamma", "[0.8, 1.2]", "lowest and highest"}}});
STEPOP_REGISTER_AUGMENTATION(JPEG, {"Through a JPEG.",
                                    {{"quality", "[50, 100]", "lowest and highest, 1 to 100"}}});
STEPOP_REGISTER_AUGMENTATION(CoarseDropout,
                             {"Black holes.",
                              {{"holes", "[1, 2]", "how many, lowest and highest"},
                               {"height", "[0.1, 0.2]", "share of the image's height"},
                               {"width", "[0.1, 0.2]", "share of the image's width"}}});
STEPOP_REGISTER_AUGMENTATION(
    RandomErasing, {"A rectangle is erased.",
                    {{"p", "0.5", "the chance"},
                     {"scale", "[0.02, 0.33]", "share of the image's area"},
                     {"ratio", "[0.3, 3.3]", "height by width"},
                     {"value", "0.0", "what is there afterwards, -1 to 1; random: normal noise"}}});

}  // namespace
}  // namespace stepop
