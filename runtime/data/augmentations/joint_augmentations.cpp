#include "runtime/data/augmentations/joint_augmentations.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/data/augmentations/geometry.h"
#include "runtime/data/augmentations/holes.h"

namespace stepop {
void JointAugmentations::Params::declare(Parameters& p) {
  const Range chance = at_least(0).at_most(1);
  constexpr NumberRange shares{.low = 0, .high = 1};
  p.add("h_flip_chance", mirror,
        "both are mirrored, left and right exchanged; not without the key augmentations", chance);
  p.add("v_flip_chance", turn_over, "both are turned over", chance);
  p.add("rot90_chance", turn, "both are turned by 0 to 3 quarters", chance);
  p.add("elastic_transform_chance", elastic, "both are warped by smooth noise", chance);
  p.add("elastic_transform_alpha", elastic_alpha, "strength; 1 moves less than a pixel",
        above(0).at_most(1e6));
  p.add("elastic_transform_sigma", elastic_sigma, "smoothness, in pixels", above(0).at_most(1000));
  p.add("optical_distortion_chance", distortion, "both as through a lens", chance);
  add_range(p,
            {"optical_distortion_min", "the weakest lens, -1 to 1", "optical_distortion_max",
             "the strongest"},
            distortion_strength, {.low = -1, .high = 1});
  add_lens(p, "optical_distortion_mode", lens);
  p.add("coarse_dropout_chance", dropout, "both get black holes at one place", chance);
  add_whole_range(
      p, {"coarse_dropout_holes_min", "how many, at least", "coarse_dropout_holes_max", "at most"},
      holes.count, {.low = 1, .high = 1000});
  add_range(p,
            {"coarse_dropout_height_min", "share of the image's height",
             "coarse_dropout_height_max", "at most"},
            holes.heights, shares);
  add_range(p,
            {"coarse_dropout_width_min", "share of the image's width", "coarse_dropout_width_max",
             "at most"},
            holes.widths, shares);
}

JointAugmentations::JointAugmentations(const Config& params, int64_t scale)
    : p_(read_parameters<Params>(params)) {
  if (scale == 1) return;
  for (const auto& [key, chance] : {std::pair{"elastic_transform_chance", p_.elastic},
                                    std::pair{"optical_distortion_chance", p_.distortion},
                                    std::pair{"coarse_dropout_chance", p_.dropout}}) {
    if (chance == 0) continue;
    throw params.error(
        key, fmt::format("needs two images of one size, and one of them is {} times as large: "
                         "they can be mirrored and turned",
                         scale));
  }
}

void JointAugmentations::apply(at::Tensor& first, at::Tensor& second, Random& random) const {
  Scene scene;
  scene.images = {{"first", &first}, {"second", &second}};
  if (happens(p_.mirror, random)) mirror(scene, /*is_horizontal=*/true);
  if (happens(p_.turn_over, random)) mirror(scene, /*is_horizontal=*/false);
  if (happens(p_.turn, random)) turn_quarters(scene, random.below(4));
  const int64_t height = first.size(1);
  const int64_t width = first.size(2);
  if (happens(p_.elastic, random)) {
    transform(scene, elastic_map(height, width, p_.elastic_alpha, p_.elastic_sigma, random));
  }
  if (happens(p_.distortion, random)) {
    transform(scene, p_.lens(height, width, p_.distortion_strength.draw(random)));
  }
  if (happens(p_.dropout, random)) drop_holes(scene, p_.holes, random);
}

std::vector<Parameter> JointAugmentations::parameters() {
  return with_prefix("augmentations/both/", parameters_of<Params>());
}

}  // namespace stepop
