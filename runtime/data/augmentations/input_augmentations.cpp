#include "runtime/data/augmentations/input_augmentations.h"

#include <fmt/format.h>

#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/pictures/webp.h"

namespace stepop {
namespace {

constexpr NumberRange kFactors{.low = 0, .high = 100};
constexpr NumberRange kFifthMoreOrLess{.low = 0.8, .high = 1.2};
constexpr int64_t kLeastMotion = 3;
constexpr int64_t kMostMotion = 255;

GreyMethod get_grey_method(const Config& params) {
  const std::string name = params.get("grayscale_method", "weighted_average");
  if (name == "weighted_average") return GreyMethod::kWeightedAverage;
  if (name == "average") return GreyMethod::kAverage;
  if (name == "desaturation") return GreyMethod::kDesaturation;
  if (name == "max") return GreyMethod::kMax;
  if (name == "from_lab") return GreyMethod::kFromLab;
  if (name == "pca") return GreyMethod::kPca;
  throw params.error(
      "grayscale_method",
      fmt::format(
          "expected weighted_average, average, desaturation, max, from_lab or pca, found \"{}\"",
          name));
}

}  // namespace

InputAugmentations::InputAugmentations(const Config& params)
    : jitter_(get_chance(params, "colorjitter_chance")),
      jitter_ranges_{
          .brightness = get_range(params, "colorjitter_min_brightness",
                                  "colorjitter_max_brightness", kFifthMoreOrLess, kFactors),
          .contrast = get_range(params, "colorjitter_min_contrast", "colorjitter_max_contrast",
                                kFifthMoreOrLess, kFactors),
          .saturation = get_range(params, "colorjitter_min_saturation",
                                  "colorjitter_max_saturation", kFifthMoreOrLess, kFactors),
          .hue = get_range(params, "colorjitter_min_hue", "colorjitter_max_hue",
                           {.low = -0.5, .high = 0.5}, {.low = -0.5, .high = 0.5})},
      noise_(get_chance(params, "gaussnoise_chance")),
      noise_deviation_(get_range(params, "gaussnoise_min", "gaussnoise_max",
                                 {.low = 0.2, .high = 0.44}, {.low = 0, .high = 1})),
      motion_(get_chance(params, "motionblur_chance")),
      motion_limit_(params.get_between("motionblur_limit", kLeastMotion, kMostMotion, 7)),
      gamma_(get_chance(params, "randgamma_chance")),
      gamma_percent_(get_range(params, "randgamma_min", "randgamma_max", {.low = 80, .high = 120},
                               {.low = 1, .high = 10000})),
      grey_(get_chance(params, "grayscale_chance")),
      grey_method_(get_grey_method(params)),
      compression_(get_chance(params, "compression_chance")),
      quality_(get_whole_range(params, "compression_quality_min", "compression_quality_max",
                               {.low = 99, .high = 100}, {.low = 1, .high = 100})) {
  const std::string type = params.get("compression_type", "jpeg");
  if (type != "jpeg" && type != "webp") {
    throw params.error("compression_type",
                       fmt::format("expected jpeg or webp, found \"{}\"", type));
  }
  is_webp_ = type == "webp";
  if (!is_webp_) return;
  try {
    need_webp();
  } catch (const Error& error) {
    throw params.error("compression_type", error.what());
  }
}

at::Tensor InputAugmentations::apply(const at::Tensor& image, Random& random) const {
  // Drawn first: what happens does not depend on the image.
  const bool jitters = happens(jitter_, random);
  const bool has_noise = happens(noise_, random);
  const bool moves = happens(motion_, random);
  const bool has_gamma = happens(gamma_, random);
  const bool is_grey = happens(grey_, random);
  const bool is_compressed = happens(compression_, random);
  if (!(jitters || has_noise || moves || has_gamma || is_grey || is_compressed)) return image;

  const uint64_t seed = random();
  return with_colours(image, [&](at::Tensor part) {
    Random own(seed);  // all parts use the same seed
    if (jitters) part = draw_jitter(jitter_ranges_, own)(part);
    if (has_noise) part = with_noise(part, noise_deviation_.draw(own), own);
    if (moves) {
      const int64_t sizes = (motion_limit_ - kLeastMotion) / 2 + 1;
      part = with_motion(part, motion_kernel(kLeastMotion + 2 * own.below(sizes), own));
    }
    if (has_gamma) part = with_gamma(part, gamma_percent_.draw(own) / 100);
    if (is_grey && part.size(0) == 3) part = in_grey(part, grey_method_);
    if (is_compressed) {
      const auto quality = static_cast<int>(quality_.draw_whole(own));
      part = is_webp_ ? through_webp(part, quality) : through_jpeg(part, quality);
    }
    return part;
  });
}

std::vector<Parameter> InputAugmentations::parameters() {
  return {
      {"augmentations/input/colorjitter_chance", "0.0",
       "brightness, contrast, saturation and hue change, in any order"},
      {"augmentations/input/colorjitter_min_brightness", "0.8", "smallest factor"},
      {"augmentations/input/colorjitter_max_brightness", "1.2", "largest"},
      {"augmentations/input/colorjitter_min_contrast", "0.8", "smallest factor"},
      {"augmentations/input/colorjitter_max_contrast", "1.2", "largest"},
      {"augmentations/input/colorjitter_min_saturation", "0.8", "smallest factor"},
      {"augmentations/input/colorjitter_max_saturation", "1.2", "largest"},
      {"augmentations/input/colorjitter_min_hue", "-0.5", "share of the colour circle"},
      {"augmentations/input/colorjitter_max_hue", "0.5", "the other end"},
      {"augmentations/input/gaussnoise_chance", "0.0", "normal noise"},
      {"augmentations/input/gaussnoise_min", "0.2", "standard deviation, of a range of 0 to 1"},
      {"augmentations/input/gaussnoise_max", "0.44", "at most"},
      {"augmentations/input/motionblur_chance", "0.0", "blurred along a line"},
      {"augmentations/input/motionblur_limit", "7", "longest line in pixels; the shortest is 3"},
      {"augmentations/input/randgamma_chance", "0.0", "values to the power of gamma"},
      {"augmentations/input/randgamma_min", "80.0", "smallest gamma, in percent"},
      {"augmentations/input/randgamma_max", "120.0", "largest"},
      {"augmentations/input/grayscale_chance", "0.0", "grey, with as many channels"},
      {"augmentations/input/grayscale_method", "weighted_average",
       "or average, desaturation, max, from_lab, pca"},
      {"augmentations/input/compression_chance", "0.0", "through a file that loses details"},
      {"augmentations/input/compression_type", "jpeg", "or webp, by libwebp"},
      {"augmentations/input/compression_quality_min", "99", "lowest quality, 1 to 100"},
      {"augmentations/input/compression_quality_max", "100", "highest"},
  };
}

}  // namespace stepop
