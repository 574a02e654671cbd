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
  struct Params {
    JitterRanges ranges;

    void declare(Parameters& p) {
      constexpr NumberRange all{.low = 0, .high = 100};
      add_spread(p, "brightness", ranges.brightness, 1, "the spread of the factor", all);
      add_spread(p, "contrast", ranges.contrast, 1, "the spread of the factor", all);
      add_spread(p, "saturation", ranges.saturation, 1, "the spread of the factor", all);
      add_spread(p, "hue", ranges.hue, 0, "up to this share of the colour circle, 0 to 0.5",
                 {.low = -0.5, .high = 0.5});
    }
  };

  explicit ColorJitter(const Params& params) : ranges_(params.ranges) {}

  void apply(Scene& scene, Random& random) const override {
    recolour(scene, draw_jitter(ranges_, random));
  }

 private:
  JitterRanges ranges_;
};

class RandomGrayscale : public Augmentation {
 public:
  static constexpr double kChance = 0.1;

  struct Params {
    void declare(Parameters& p) { declare_chance(p, kChance); }
  };

  explicit RandomGrayscale(const Params&) {}
  double usual_chance() const override { return kChance; }
  void apply(Scene& scene, Random&) const override {
    recolour(scene,
             [](const at::Tensor& image) { return in_grey(image, GreyMethod::kWeightedAverage); });
  }
};

class GaussianBlur : public Augmentation {
 public:
  struct Params {
    int64_t kernel_size = 5;
    NumberRange sigma{.low = 0.1, .high = 2};

    void declare(Parameters& p) {
      p.add("kernel_size", kernel_size, "pixels, an odd number", at_least(1).at_most(255));
      add_range(p, "sigma", sigma, "standard deviation, lowest and highest, in pixels",
                {.low = 1e-3, .high = 1000});
    }
  };

  GaussianBlur(const Params& params, const Config& config)
      : size_(params.kernel_size), sigma_(params.sigma) {
    if (size_ % 2 == 0) {
      throw config.error("kernel_size", fmt::format("expected an odd number, found {}", size_));
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
  struct Params {
    NumberRange sigma{.low = 0.1, .high = 0.1};

    void declare(Parameters& p) {
      add_range(p, "sigma", sigma, "standard deviation, lowest and highest, for a range of 0 to 1",
                {.low = 0, .high = 1});
    }
  };

  explicit GaussianNoise(const Params& params) : sigma_(params.sigma) {}
  void apply(Scene& scene, Random& random) const override {
    const double deviation = sigma_.draw(random);
    recolour(scene, [&](const at::Tensor& image) { return with_noise(image, deviation, random); });
  }

 private:
  NumberRange sigma_;
};

class MotionBlur : public Augmentation {
 public:
  struct Params {
    int64_t limit = 7;

    void declare(Parameters& p) {
      p.add("limit", limit, "the most pixels", at_least(3).at_most(255));
    }
  };

  explicit MotionBlur(const Params& params) : limit_(params.limit) {}
  void apply(Scene& scene, Random& random) const override {
    const at::Tensor kernel = motion_kernel(3 + 2 * random.below((limit_ - 3) / 2 + 1), random);
    recolour(scene, [&](const at::Tensor& image) { return with_motion(image, kernel); });
  }

 private:
  int64_t limit_;
};

class RandomGamma : public Augmentation {
 public:
  struct Params {
    NumberRange gamma{.low = 0.8, .high = 1.2};

    void declare(Parameters& p) {
      add_range(p, "gamma", gamma, "lowest and highest", {.low = 0.01, .high = 100});
    }
  };

  explicit RandomGamma(const Params& params) : gamma_(params.gamma) {}
  void apply(Scene& scene, Random& random) const override {
    const double gamma = gamma_.draw(random);
    recolour(scene, [&](const at::Tensor& image) { return with_gamma(image, gamma); });
  }

 private:
  NumberRange gamma_;
};

class JPEG : public Augmentation {
 public:
  struct Params {
    NumberRange quality{.low = 50, .high = 100};

    void declare(Parameters& p) {
      add_range(p, "quality", quality, "lowest and highest, 1 to 100", {.low = 1, .high = 100});
    }
  };

  explicit JPEG(const Params& params) : quality_(params.quality) {}
  void apply(Scene& scene, Random& random) const override {
    const auto quality = static_cast<int>(quality_.draw_whole(random));
    recolour(scene, [&](const at::Tensor& image) { return through_jpeg(image, quality); });
  }

 private:
  NumberRange quality_;
};

class CoarseDropout : public Augmentation {
 public:
  struct Params {
    HoleOptions options;

    void declare(Parameters& p) {
      constexpr NumberRange shares{.low = 0, .high = 1};
      add_range(p, "holes", options.count, "how many, lowest and highest",
                {.low = 1, .high = 1000});
      add_range(p, "height", options.heights, "share of the image's height", shares);
      add_range(p, "width", options.widths, "share of the image's width", shares);
    }
  };

  explicit CoarseDropout(const Params& params) : options_(params.options) {}
  void apply(Scene& scene, Random& random) const override { drop_holes(scene, options_, random); }

 private:
  HoleOptions options_;
};

/// A rectangle is erased (Zhong et al., 2017), as in torchvision.
class RandomErasing : public Augmentation {
 public:
  static constexpr double kChance = 0.5;

  struct Params {
    NumberRange scale{.low = 0.02, .high = 0.33};
    NumberRange ratio{.low = 0.3, .high = 3.3};
    bool is_noise = false;
    double value = 0;

    void declare(Parameters& p) {
      declare_chance(p, kChance);
      add_range(p, "scale", scale, "share of the image's area", {.low = 0, .high = 1});
      add_range(p, "ratio", ratio, "height by width", {.low = 1e-3, .high = 1e3});
      const Config* config = p.describe({"value",
                                         fmt::format("{}", value),
                                         "what is there afterwards, -1 to 1; random: normal noise",
                                         false,
                                         {.kind = "number", .choices = {"random"}}});
      if (config != nullptr) read_value(*config);
    }

    void read_value(const Config& config) {
      const Value* given = config.has("value") ? config.peek("value") : nullptr;
      is_noise = given != nullptr && given->is_text() && given->as_text() == "random";
      if (is_noise) return;
      value = config.get("value", value);
      if (value >= -1 && value <= 1) return;
      throw config.error("value", fmt::format("expected -1 to 1, or random, found {}", value));
    }
  };

  explicit RandomErasing(const Params& params) : p_(params) {}

  double usual_chance() const override { return kChance; }

  void apply(Scene& scene, Random& random) const override {
    constexpr int kTries = 10;
    const auto area = static_cast<double>(scene.height() * scene.width());
    const NumberRange logarithms{.low = std::log(p_.ratio.low), .high = std::log(p_.ratio.high)};
    for (int i = 0; i < kTries; ++i) {
      const double erased = area * p_.scale.draw(random);
      const double ratio = std::exp(logarithms.draw(random));
      const auto height = static_cast<int64_t>(std::round(std::sqrt(erased * ratio)));
      const auto width = static_cast<int64_t>(std::round(std::sqrt(erased / ratio)));
      if (height >= scene.height() || width >= scene.width()) continue;
      const int64_t top = random.below(scene.height() - height + 1);
      const int64_t left = random.below(scene.width() - width + 1);
      for (const SceneValue& image : scene.images) {
        *image.value = image.value->clone();
        at::Tensor part = image.value->narrow(1, top, height).narrow(2, left, width);
        if (p_.is_noise) {
          const at::Generator generator = at::detail::createCPUGenerator(random());
          part.copy_(at::randn(part.sizes(), generator, at::kFloat));
        } else {
          part.fill_(p_.value);
        }
      }
      return;
    }
  }

 private:
  Params p_;
};

STEPOP_REGISTER_AUGMENTATION(
    ColorJitter,
    {"Brightness, contrast, saturation and hue change, in any order. A number n: factors of 1 - n "
     "to 1 + n; or [lowest, highest]."});
STEPOP_REGISTER_AUGMENTATION(RandomGrayscale, {"Grey, with as many channels."});
STEPOP_REGISTER_AUGMENTATION(GaussianBlur, {"Blurred by a Gaussian."});
STEPOP_REGISTER_AUGMENTATION(GaussianNoise, {"Normal noise."});
STEPOP_REGISTER_AUGMENTATION(MotionBlur,
                             {"Blurred along a line of 3 pixels and more, as in albumentations."});
STEPOP_REGISTER_AUGMENTATION(RandomGamma, {"Values, 0 to 1, to the power of gamma."});
STEPOP_REGISTER_AUGMENTATION(JPEG, {"Through a JPEG."});
STEPOP_REGISTER_AUGMENTATION(CoarseDropout, {"Black holes."});
STEPOP_REGISTER_AUGMENTATION(RandomErasing, {"A rectangle is erased."});

}  // namespace
}  // namespace stepop
