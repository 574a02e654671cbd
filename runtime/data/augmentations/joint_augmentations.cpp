#include "runtime/data/augmentations/joint_augmentations.h"

#include <fmt/format.h>

#include <string>

#include "runtime/data/augmentations/geometry.h"
#include "runtime/data/augmentations/holes.h"

namespace stepop {
namespace {

constexpr NumberRange kShare{.low = 0, .high = 1};
constexpr double kMostHoles = 1000;
constexpr double kMostSigma = 1000;
constexpr double kMostAlpha = 1e6;

double get_positive(const Config& params, const char* key, double fallback, double most) {
  const double number = params.get(key, fallback);
  if (number > 0 && number <= most) return number;
  throw params.error(key, fmt::format("expected above 0, up to {}, found {}", most, number));
}

}  // namespace

JointAugmentations::JointAugmentations(const Config& params, int64_t scale)
    : mirror_(get_chance(params, "h_flip_chance", 0.5)),
      turn_over_(get_chance(params, "v_flip_chance")),
      turn_(get_chance(params, "rot90_chance")),
      elastic_(get_chance(params, "elastic_transform_chance")),
      elastic_alpha_(get_positive(params, "elastic_transform_alpha", 1, kMostAlpha)),
      elastic_sigma_(get_positive(params, "elastic_transform_sigma", 50, kMostSigma)),
      distortion_(get_chance(params, "optical_distortion_chance")),
      distortion_strength_(get_range(params, "optical_distortion_min", "optical_distortion_max",
                                     {.low = -0.05, .high = 0.05}, {.low = -1, .high = 1})),
      lens_(get_lens(params, "optical_distortion_mode")),
      dropout_(get_chance(params, "coarse_dropout_chance")),
      holes_{
          .count = get_whole_range(params, "coarse_dropout_holes_min", "coarse_dropout_holes_max",
                                   {.low = 1, .high = 2}, {.low = 1, .high = kMostHoles}),
          .heights = get_range(params, "coarse_dropout_height_min", "coarse_dropout_height_max",
                               {.low = 0.1, .high = 0.2}, kShare),
          .widths = get_range(params, "coarse_dropout_width_min", "coarse_dropout_width_max",
                              {.low = 0.1, .high = 0.2}, kShare)} {
  if (scale == 1) return;
  for (const char* key :
       {"elastic_transform_chance", "optical_distortion_chance", "coarse_dropout_chance"}) {
    if (params.get(key, 0.0) == 0) continue;
    throw params.error(
        key, fmt::format("needs two images of one size, and one of them is {} times as large: "
                         "they can be mirrored and turned",
                         scale));
  }
}

void JointAugmentations::apply(at::Tensor& first, at::Tensor& second, Random& random) const {
  Scene scene;
  scene.images = {{"first", &first}, {"second", &second}};
  if (happens(mirror_, random)) mirror(scene, /*is_horizontal=*/true);
  if (happens(turn_over_, random)) mirror(scene, /*is_horizontal=*/false);
  if (happens(turn_, random)) turn_quarters(scene, random.below(4));
  const int64_t height = first.size(1);
  const int64_t width = first.size(2);
  if (happens(elastic_, random)) {
    transform(scene, elastic_map(height, width, elastic_alpha_, elastic_sigma_, random));
  }
  if (happens(distortion_, random)) {
    transform(scene, lens_(height, width, distortion_strength_.draw(random)));
  }
  if (happens(dropout_, random)) drop_holes(scene, holes_, random);
}

std::vector<Parameter> JointAugmentations::parameters() {
  return {
      {"augmentations/both/h_flip_chance", "0.5",
       "both are mirrored, left and right exchanged; not without the key augmentations"},
      {"augmentations/both/v_flip_chance", "0.0", "both are turned over"},
      {"augmentations/both/rot90_chance", "0.0", "both are turned by 0 to 3 quarters"},
      {"augmentations/both/elastic_transform_chance", "0.0", "both are warped by smooth noise"},
      {"augmentations/both/elastic_transform_alpha", "1.0", "strength; 1 moves less than a pixel"},
      {"augmentations/both/elastic_transform_sigma", "50.0", "smoothness, in pixels"},
      {"augmentations/both/optical_distortion_chance", "0.0", "both as through a lens"},
      {"augmentations/both/optical_distortion_min", "-0.05", "the weakest lens, -1 to 1"},
      {"augmentations/both/optical_distortion_max", "0.05", "the strongest"},
      {"augmentations/both/optical_distortion_mode", "camera", "or fisheye"},
      {"augmentations/both/coarse_dropout_chance", "0.0", "both get black holes at one place"},
      {"augmentations/both/coarse_dropout_holes_min", "1", "how many, at least"},
      {"augmentations/both/coarse_dropout_holes_max", "2", "at most"},
      {"augmentations/both/coarse_dropout_height_min", "0.1", "share of the image's height"},
      {"augmentations/both/coarse_dropout_height_max", "0.2", "at most"},
      {"augmentations/both/coarse_dropout_width_min", "0.1", "share of the image's width"},
      {"augmentations/both/coarse_dropout_width_max", "0.2", "at most"},
  };
}

}  // namespace stepop
