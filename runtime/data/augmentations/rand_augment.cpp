#include <cmath>

#include "runtime/data/augmentations/augmentation.h"
#include "runtime/data/augmentations/colour.h"
#include "runtime/data/augmentations/geometry.h"

namespace stepop {
namespace {

/// Some of 14 changes, drawn anew for each example, with one strength (Cubuk et al., 2019), as in
/// torchvision.transforms.v2.RandAugment.
class RandAugment : public Augmentation {
 public:
  explicit RandAugment(const Config& params)
      : count_(params.get_between("num_ops", 1, 100, 2)),
        bins_(params.get_between("num_magnitude_bins", 2, 1000, 31)),
        magnitude_(params.get_between("magnitude", 0, bins_ - 1, 9)),
        fill_(get_fill(params, -1)) {}

  void apply(Scene& scene, Random& random) const override {
    constexpr int64_t kChanges = 14;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t change = random.below(kChanges);
      const double sign = random.below(2) == 0 ? 1 : -1;
      apply_one(scene, change, sign);
    }
  }

 private:
  void apply_one(Scene& scene, int64_t change, double sign) const {
    const double share = static_cast<double>(magnitude_) / static_cast<double>(bins_ - 1);
    const auto move = [&](const AffineOptions& options, PixelPosition middle) {
      transform(scene, affine(options, middle), fill_);
    };
    constexpr double kDegrees = 180 / 3.14159265358979323846;
    constexpr PixelPosition kCorner{-0.5, -0.5};
    const double shear = sign * std::atan(0.3 * share) * kDegrees;
    const auto shift = [&](int64_t side) {
      return sign * std::trunc(150.0 / 331 * share * static_cast<double>(side));
    };
    const double factor = 1 + sign * 0.9 * share;
    switch (change) {
      case 0:
        return move({.shear_x = shear}, kCorner);
      case 1:
        return move({.shear_y = shear}, kCorner);
      case 2:
        return move({.shift = {shift(scene.width()), 0}}, {});
      case 3:
        return move({.shift = {0, shift(scene.height())}}, {});
      case 4:
        return move({.degrees = sign * 30 * share},
                    {0.5 * static_cast<double>(scene.width() - 1),
                     0.5 * static_cast<double>(scene.height() - 1)});
      case 5:
        return recolour(scene,
                        [&](const at::Tensor& image) { return with_brightness(image, factor); });
      case 6:
        return recolour(scene, [&](const at::Tensor& image) {
          return image.size(0) == 3 ? with_saturation(image, factor) : image;
        });
      case 7:
        return recolour(scene,
                        [&](const at::Tensor& image) { return with_contrast(image, factor); });
      case 8:
        return recolour(scene,
                        [&](const at::Tensor& image) { return with_sharpness(image, factor); });
      case 9: {
        const auto bits = static_cast<int>(8 - std::nearbyint(4 * share));
        return recolour(scene,
                        [&](const at::Tensor& image) { return with_posterization(image, bits); });
      }
      case 10:
        return recolour(
            scene, [&](const at::Tensor& image) { return with_solarization(image, 1 - share); });
      case 11:
        return recolour(scene, with_autocontrast);
      case 12:
        return recolour(scene, with_equalization);
      default:
        return;  // the change that changes nothing
    }
  }

  int64_t count_;
  int64_t bins_;
  int64_t magnitude_;
  Fill fill_;
};

STEPOP_REGISTER_AUGMENTATION(
    RandAugment, {"Some of 14 changes of geometry and colours, drawn anew each time.",
                  {{"num_ops", "2", "how many one after the other"},
                   {"magnitude", "9", "how strong, 0 to num_magnitude_bins - 1"},
                   {"num_magnitude_bins", "31", "in how many steps strengths are counted"},
                   {"fill", "-1.0", "what images show beyond their border; repeat: the border"}}});

}  // namespace
}  // namespace stepop
