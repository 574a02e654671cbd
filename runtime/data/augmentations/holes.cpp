#include "runtime/data/augmentations/holes.h"

namespace stepop {

void drop_holes(Scene& scene, const HoleOptions& options, Random& random) {
  constexpr float kBlackHole = -1;
  for (const SceneValue& image : scene.images) *image.value = image.value->clone();
  const int64_t holes = options.count.draw_whole(random);
  for (int64_t i = 0; i < holes; ++i) {
    const auto side = [&](const NumberRange& share, int64_t whole) {
      return static_cast<int64_t>(share.draw(random) * static_cast<double>(whole));
    };
    const int64_t height = side(options.heights, scene.height());
    const int64_t width = side(options.widths, scene.width());
    const int64_t top = random.below(scene.height() - height + 1);
    const int64_t left = random.below(scene.width() - width + 1);
    for (const SceneValue& image : scene.images) {
      image.value->narrow(1, top, height).narrow(2, left, width).fill_(kBlackHole);
    }
  }
}

}  // namespace stepop
