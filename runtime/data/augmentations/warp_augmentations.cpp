#include <array>
#include <cmath>

#include "runtime/data/augmentations/chance.h"
#include "runtime/data/augmentations/geometry.h"

namespace stepop {
namespace {

constexpr double kBlackBorder = -1;

PixelPosition middle_of(const Scene& scene) {
  return {0.5 * static_cast<double>(scene.width() - 1),
          0.5 * static_cast<double>(scene.height() - 1)};
}

class RandomAffine : public Augmentation {
 public:
  explicit RandomAffine(const Config& params)
      : degrees_(get_spread(params, "degrees", 0, {.low = -180, .high = 180})),
        scale_(get_range(params, "scale", {.low = 1, .high = 1}, {.low = 1e-3, .high = 1e3})),
        shear_(get_spread(params, "shear", 0, {.low = -80, .high = 80})),
        fill_(get_fill(params, kBlackBorder)) {
    const auto shares = params.get<std::vector<double>>("translate", {0, 0});
    if (shares.size() != 2 || !(shares[0] >= 0 && shares[0] <= 1) ||
        !(shares[1] >= 0 && shares[1] <= 1)) {
      throw params.error("translate", "expected [share of the width, share of the height], 0 to 1");
    }
    translate_ = {shares[0], shares[1]};
  }

  void apply(Scene& scene, Random& random) const override {
    AffineOptions options{.degrees = degrees_.draw(random)};
    const auto shift = [&](double share, int64_t side) {
      const double most = share * static_cast<double>(side);
      return std::round(NumberRange{.low = -most, .high = most}.draw(random));
    };
    options.shift.x = shift(translate_.x, scene.width());
    options.shift.y = shift(translate_.y, scene.height());
    options.scale = scale_.draw(random);
    options.shear_x = shear_.draw(random);
    transform(scene, affine(options, middle_of(scene)), fill_);
  }

 private:
  NumberRange degrees_;
  PixelPosition translate_;
  NumberRange scale_;
  NumberRange shear_;
  Fill fill_;
};

/// Each corner moves inwards by up to `distortion_scale` of half a side, as in torchvision.
class RandomPerspective : public Augmentation {
 public:
  explicit RandomPerspective(const Config& params)
      : distortion_(get_chance(params, "distortion_scale", 0.5)),
        fill_(get_fill(params, kBlackBorder)) {}

  double usual_chance() const override { return 0.5; }

  void apply(Scene& scene, Random& random) const override {
    const auto right = static_cast<double>(scene.width() - 1);
    const auto bottom = static_cast<double>(scene.height() - 1);
    const auto inwards = [&](int64_t side) {
      const double most = distortion_ * static_cast<double>(side / 2);
      return static_cast<double>(random.below(static_cast<int64_t>(most) + 1));
    };
    const std::array<PixelPosition, 4> corners = {
        {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
    std::array<PixelPosition, 4> moved = corners;
    for (PixelPosition& corner : moved) {
      const double across = inwards(scene.width());
      const double down = inwards(scene.height());
      corner.x += corner.x == 0 ? across : -across;
      corner.y += corner.y == 0 ? down : -down;
    }
    transform(scene, homography_between(corners, moved), fill_);
  }

 private:
  double distortion_;
  Fill fill_;
};

/// See elastic_map.
class ElasticTransform : public Augmentation {
 public:
  explicit ElasticTransform(const Config& params)
      : alpha_(params.get("alpha", 300.0)), sigma_(params.get("sigma", 8.0)) {
    if (!(alpha_ > 0 && alpha_ <= 1e6)) throw params.error("alpha", "expected above 0, up to 1e6");
    if (!(sigma_ > 0 && sigma_ <= 1000))
      throw params.error("sigma", "expected above 0, up to 1000");
  }
  void apply(Scene& scene, Random& random) const override {
    transform(scene, elastic_map(scene.height(), scene.width(), alpha_, sigma_, random));
  }

 private:
  double alpha_;
  double sigma_;
};

/// See camera_map and fisheye_map.
class OpticalDistortion : public Augmentation {
 public:
  explicit OpticalDistortion(const Config& params)
      : strength_(
            get_range(params, "strength", {.low = -0.05, .high = 0.05}, {.low = -1, .high = 1})),
        map_(get_lens(params, "mode")) {}
  void apply(Scene& scene, Random& random) const override {
    transform(scene, map_(scene.height(), scene.width(), strength_.draw(random)));
  }

 private:
  NumberRange strength_;
  LensMap* map_;
};

const Parameter kFillOfWarp{"fill", "-1.0",
                            "what images show beyond their border; repeat: the border"};

STEPOP_REGISTER_AUGMENTATION(
    RandomAffine,
    {"Turned, moved, enlarged and sheared about the middle.",
     {{"degrees", "0.0", "turns by -degrees to degrees, or [lowest, highest]; clockwise"},
      {"translate", "[0, 0]", "moves by up to these shares of width and height"},
      {"scale", "[1, 1]", "enlarges by"},
      {"shear", "0.0", "shears by -shear to shear degrees along x, or [lowest, highest]"},
      kFillOfWarp}});
STEPOP_REGISTER_AUGMENTATION(RandomPerspective,
                             {"As seen from elsewhere: each corner moves inwards.",
                              {{"p", "0.5", "the chance"},
                               {"distortion_scale", "0.5", "by up to this share of half a side"},
                               kFillOfWarp}});
STEPOP_REGISTER_AUGMENTATION(ElasticTransform,
                             {"Smooth noise moves the pixels, as in albumentations.",
                              {{"alpha", "300.0", "strength; 1 moves less than a pixel"},
                               {"sigma", "8.0", "smoothness, in pixels"}}});
STEPOP_REGISTER_AUGMENTATION(OpticalDistortion, {"As through a lens.",
                                                 {{"strength", "[-0.05, 0.05]",
                                                   "-1 to 1; above 0 shrinks the borders"}}});

}  // namespace
}  // namespace stepop
