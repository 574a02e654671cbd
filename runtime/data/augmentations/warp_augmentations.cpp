#include <array>
#include <cmath>

#include "runtime/data/augmentations/chance.h"
#include "runtime/data/augmentations/geometry.h"

namespace stepop {
namespace {

PixelPosition middle_of(const Scene& scene) {
  return {0.5 * static_cast<double>(scene.width() - 1),
          0.5 * static_cast<double>(scene.height() - 1)};
}

class RandomAffine : public Augmentation {
 public:
  struct Params {
    NumberRange degrees;
    std::array<double, 2> translate = {0, 0};
    NumberRange scale{.low = 1, .high = 1};
    NumberRange shear;
    Fill fill;

    void declare(Parameters& p) {
      add_spread(p, "degrees", degrees, 0,
                 "turns by -degrees to degrees, or [lowest, highest]; clockwise",
                 {.low = -180, .high = 180});
      p.add("translate", translate, "moves by up to these shares of width and height",
            at_least(0).at_most(1));
      add_range(p, "scale", scale, "enlarges by", {.low = 1e-3, .high = 1e3});
      add_spread(p, "shear", shear, 0,
                 "shears by -shear to shear degrees along x, or [lowest, highest]",
                 {.low = -80, .high = 80});
      add_fill(p, fill);
    }
  };

  explicit RandomAffine(const Params& params) : p_(params) {}

  void apply(Scene& scene, Random& random) const override {
    AffineOptions options{.degrees = p_.degrees.draw(random)};
    const auto shift = [&](double share, int64_t side) {
      const double most = share * static_cast<double>(side);
      return std::round(NumberRange{.low = -most, .high = most}.draw(random));
    };
    options.shift.x = shift(p_.translate[0], scene.width());
    options.shift.y = shift(p_.translate[1], scene.height());
    options.scale = p_.scale.draw(random);
    options.shear_x = p_.shear.draw(random);
    transform(scene, affine(options, middle_of(scene)), p_.fill);
  }

 private:
  Params p_;
};

/// Each corner moves inwards by up to `distortion_scale` of half a side, as in torchvision.
class RandomPerspective : public Augmentation {
 public:
  static constexpr double kChance = 0.5;

  struct Params {
    double distortion_scale = 0.5;
    Fill fill;

    void declare(Parameters& p) {
      declare_chance(p, kChance);
      p.add("distortion_scale", distortion_scale, "by up to this share of half a side",
            at_least(0).at_most(1));
      add_fill(p, fill);
    }
  };

  explicit RandomPerspective(const Params& params) : p_(params) {}

  double usual_chance() const override { return kChance; }

  void apply(Scene& scene, Random& random) const override {
    const auto right = static_cast<double>(scene.width() - 1);
    const auto bottom = static_cast<double>(scene.height() - 1);
    const auto inwards = [&](int64_t side) {
      const double most = p_.distortion_scale * static_cast<double>(side / 2);
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
    transform(scene, homography_between(corners, moved), p_.fill);
  }

 private:
  Params p_;
};

/// See elastic_map.
class ElasticTransform : public Augmentation {
 public:
  struct Params {
    double alpha = 300;
    double sigma = 8;

    void declare(Parameters& p) {
      p.add("alpha", alpha, "strength; 1 moves less than a pixel", above(0).at_most(1e6));
      p.add("sigma", sigma, "smoothness, in pixels", above(0).at_most(1000));
    }
  };

  explicit ElasticTransform(const Params& params) : p_(params) {}
  void apply(Scene& scene, Random& random) const override {
    transform(scene, elastic_map(scene.height(), scene.width(), p_.alpha, p_.sigma, random));
  }

 private:
  Params p_;
};

/// See camera_map and fisheye_map.
class OpticalDistortion : public Augmentation {
 public:
  struct Params {
    NumberRange strength{.low = -0.05, .high = 0.05};
    LensMap* lens = nullptr;

    void declare(Parameters& p) {
      add_range(p, "strength", strength, "-1 to 1; above 0 shrinks the borders",
                {.low = -1, .high = 1});
      add_lens(p, "mode", lens);
    }
  };

  explicit OpticalDistortion(const Params& params) : p_(params) {}
  void apply(Scene& scene, Random& random) const override {
    transform(scene, p_.lens(scene.height(), scene.width(), p_.strength.draw(random)));
  }

 private:
  Params p_;
};

STEPOP_REGISTER_AUGMENTATION(RandomAffine,
                             {"Turned, moved, enlarged and sheared about the middle."});
STEPOP_REGISTER_AUGMENTATION(RandomPerspective,
                             {"As seen from elsewhere: each corner moves inwards."});
STEPOP_REGISTER_AUGMENTATION(ElasticTransform,
                             {"Smooth noise moves the pixels, as in albumentations."});
STEPOP_REGISTER_AUGMENTATION(OpticalDistortion, {"As through a lens."});

}  // namespace
}  // namespace stepop
