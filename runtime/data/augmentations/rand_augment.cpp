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
  struct Params {
    int64_t num_ops = 2;
    int64_t magnitude = 9;
    int64_t num_magnitude_bins = 31;
    Fill fill;

    void declare(Parameters& p) {
      p.add("num_ops", num_ops, "how many one after the other", at_least(1).at_most(100));
      p.add("num_magnitude_bins", num_magnitude_bins, "in how many steps strengths are counted",
            at_least(2).at_most(1000));
      p.add("magnitude", magnitude, "how strong, 0 to num_magnitude_bins - 1",
            at_least(0).at_most(static_cast<double>(num_magnitude_bins - 1)));
      add_fill(p, fill);
    }
  };

  explicit RandAugment(const Params& params) : p_(params) {}

  void apply(Scene& scene, Random& random) const override {
    constexpr int64_t kChanges = 14;
    for (int64_t i = 0; i < p_.num_ops; ++i) {
      const int64_t change = random.below(kChanges);
      const double sign = random.below(2) == 0 ? 1 : -1;
      apply_one(scene, change, sign);
    }
  }

 private:
  void apply_one(Scene& scene, int64_t change, double sign) const {
    const double share =
        static_cast<double>(p_.magnitude) / static_cast<double>(p_.num_magnitude_bins - 1);
    const auto move = [&](const AffineOptions& options, PixelPosition middle) {
      transform(scene, affine(options, middle), p_.fill);
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

  Params p_;
};

STEPOP_REGISTER_AUGMENTATION(RandAugment,
                             {"Some of 14 changes of geometry and colours, drawn anew each time."});

}  // namespace
}  // namespace stepop
