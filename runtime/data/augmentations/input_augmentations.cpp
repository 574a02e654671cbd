#include "runtime/data/augmentations/input_augmentations.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/pictures/webp.h"

namespace stepop {
namespace {

constexpr int64_t kLeastMotion = 3;

void add_grey_method(Parameters& p, GreyMethod& method) {
  const std::vector<std::string> names = {"weighted_average", "average", "desaturation", "max",
                                          "from_lab",         "pca"};
  std::string name = names.front();
  p.add("grayscale_method", name, "or average, desaturation, max, from_lab, pca", one_of(names));
  method = static_cast<GreyMethod>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

void InputAugmentations::Params::declare(Parameters& p) {
  const Range chance = at_least(0).at_most(1);
  const auto add_factors = [&](const char* low, const char* high, NumberRange& range) {
    add_range(p, {low, "smallest factor", high, "largest"}, range, {.low = 0, .high = 100});
  };
  p.add("colorjitter_chance", jitter,
        "brightness, contrast, saturation and hue change, in any order", chance);
  add_factors("colorjitter_min_brightness", "colorjitter_max_brightness", jitter_ranges.brightness);
  add_factors("colorjitter_min_contrast", "colorjitter_max_contrast", jitter_ranges.contrast);
  add_factors("colorjitter_min_saturation", "colorjitter_max_saturation", jitter_ranges.saturation);
  add_range(
      p,
      {"colorjitter_min_hue", "share of the colour circle", "colorjitter_max_hue", "the other end"},
      jitter_ranges.hue, {.low = -0.5, .high = 0.5});
  p.add("gaussnoise_chance", noise, "normal noise", chance);
  add_range(
      p,
      {"gaussnoise_min", "standard deviation, of a range of 0 to 1", "gaussnoise_max", "at most"},
      noise_deviation, {.low = 0, .high = 1});
  p.add("motionblur_chance", motion, "blurred along a line", chance);
  p.add("motionblur_limit", motion_limit, "longest line in pixels; the shortest is 3",
        at_least(kLeastMotion).at_most(255));
  p.add("randgamma_chance", gamma, "values to the power of gamma", chance);
  add_range(p, {"randgamma_min", "smallest gamma, in percent", "randgamma_max", "largest"},
            gamma_percent, {.low = 1, .high = 10000});
  p.add("grayscale_chance", grey, "grey, with as many channels", chance);
  add_grey_method(p, grey_method);
  p.add("compression_chance", compression, "through a file that loses details", chance);
  p.add("compression_type", compression_type, "or webp, by libwebp", one_of({"jpeg", "webp"}));
  add_whole_range(
      p,
      {"compression_quality_min", "lowest quality, 1 to 100", "compression_quality_max", "highest"},
      quality, {.low = 1, .high = 100});
}

InputAugmentations::InputAugmentations(const Config& config) : p_(read_parameters<Params>(config)) {
  if (p_.compression_type != "webp") return;
  try {
    need_webp();
  } catch (const Error& error) {
    throw config.error("compression_type", error.what());
  }
}

at::Tensor InputAugmentations::apply(const at::Tensor& image, Random& random) const {
  // Drawn first: what happens does not depend on the image.
  const bool jitters = happens(p_.jitter, random);
  const bool has_noise = happens(p_.noise, random);
  const bool moves = happens(p_.motion, random);
  const bool has_gamma = happens(p_.gamma, random);
  const bool is_grey = happens(p_.grey, random);
  const bool is_compressed = happens(p_.compression, random);
  if (!(jitters || has_noise || moves || has_gamma || is_grey || is_compressed)) return image;

  const uint64_t seed = random();
  return with_colours(image, [&](at::Tensor part) {
    Random own(seed);  // all parts use the same seed
    if (jitters) part = draw_jitter(p_.jitter_ranges, own)(part);
    if (has_noise) part = with_noise(part, p_.noise_deviation.draw(own), own);
    if (moves) {
      const int64_t sizes = (p_.motion_limit - kLeastMotion) / 2 + 1;
      part = with_motion(part, motion_kernel(kLeastMotion + 2 * own.below(sizes), own));
    }
    if (has_gamma) part = with_gamma(part, p_.gamma_percent.draw(own) / 100);
    if (is_grey && part.size(0) == 3) part = in_grey(part, p_.grey_method);
    if (is_compressed) {
      const auto quality = static_cast<int>(p_.quality.draw_whole(own));
      const bool is_webp = p_.compression_type == "webp";
      part = is_webp ? through_webp(part, quality) : through_jpeg(part, quality);
    }
    return part;
  });
}

std::vector<Parameter> InputAugmentations::parameters() {
  return with_prefix("augmentations/input/", parameters_of<Params>());
}

}  // namespace stepop
