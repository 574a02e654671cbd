#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "runtime/data/augmentations/chance.h"
#include "runtime/data/augmentations/geometry.h"

namespace stepop {
namespace {

constexpr int64_t kMostSide = 1 << 15;
constexpr double kBlack = -1;

/// `size` of a config: [height, width], or one side of a square.
struct Size {
  int64_t height = 0;
  int64_t width = 0;
};

Size get_size(const Config& params) {
  const Value* value = params.peek("size");
  const auto sides = value != nullptr && value->is_list()
                         ? params.get<std::vector<int64_t>>("size")
                         : std::vector<int64_t>(2, params.get<int64_t>("size"));
  if (sides.size() == 2 && sides[0] >= 1 && sides[1] >= 1 && sides[0] <= kMostSide &&
      sides[1] <= kMostSide) {
    return {sides[0], sides[1]};
  }
  throw params.error("size", fmt::format("expected a side or [height, width], 1 to {}, found {}",
                                         kMostSide, value->describe()));
}

PixelPosition middle_of(const Scene& scene) {
  return {0.5 * static_cast<double>(scene.width() - 1),
          0.5 * static_cast<double>(scene.height() - 1)};
}

class RandomHorizontalFlip : public Augmentation {
 public:
  explicit RandomHorizontalFlip(const Config& params) {
    if (!params.has("swap")) return;
    const size_t count = params.peek("swap")->is_list() ? params.peek("swap")->as_list().size() : 0;
    for (size_t i = 0; i < count; ++i) {
      const std::string key = fmt::format("swap/{}", i);
      const auto pair = params.get<std::vector<int64_t>>(key);
      if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0) {
        throw params.error(key, "expected the numbers of two keypoints, such as [2, 5]");
      }
      swapped_.emplace_back(pair[0], pair[1]);
    }
    if (count == 0) throw params.error("swap", "expected pairs of keypoints, such as [[2, 5]]");
  }

  double usual_chance() const override { return 0.5; }

  void apply(Scene& scene, Random&) const override {
    mirror(scene, /*is_horizontal=*/true);
    for (const SceneValue& points : scene.keypoints) {
      for (const auto& [left, right] : swapped_) {
        const int64_t count = points.value->dim() < 2 ? 0 : points.value->size(-2);
        if (left >= count || right >= count) {
          throw Error(fmt::format("swap: [{}, {}], but \"{}\" has {} keypoints, counted from 0",
                                  left, right, points.key, count));
        }
        const at::Tensor kept = points.value->select(-2, left).clone();
        points.value->select(-2, left).copy_(points.value->select(-2, right));
        points.value->select(-2, right).copy_(kept);
      }
    }
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> swapped_;
};

class RandomVerticalFlip : public Augmentation {
 public:
  explicit RandomVerticalFlip(const Config&) {}
  double usual_chance() const override { return 0.5; }
  void apply(Scene& scene, Random&) const override { mirror(scene, /*is_horizontal=*/false); }
};

class RandomRotate90 : public Augmentation {
 public:
  explicit RandomRotate90(const Config&) {}
  void apply(Scene& scene, Random& random) const override { turn_quarters(scene, random.below(4)); }
};

class Resize : public Augmentation {
 public:
  explicit Resize(const Config& params) : size_(get_size(params)) {}
  void apply(Scene& scene, Random&) const override { resize(scene, size_.height, size_.width); }

 private:
  Size size_;
};

class CenterCrop : public Augmentation {
 public:
  explicit CenterCrop(const Config& params)
      : size_(get_size(params)), fill_(get_fill(params, kBlack)) {}
  void apply(Scene& scene, Random&) const override {
    crop(scene, (scene.height() - size_.height) / 2, (scene.width() - size_.width) / 2,
         size_.height, size_.width, fill_);
  }

 private:
  Size size_;
  Fill fill_;
};

class RandomCrop : public Augmentation {
 public:
  explicit RandomCrop(const Config& params)
      : size_(get_size(params)),
        padding_(params.get_between("padding", 0, kMostSide, 0)),
        fill_(get_fill(params, kBlack)) {}

  void apply(Scene& scene, Random& random) const override {
    const auto start = [&](int64_t side, int64_t part, const char* what) {
      const int64_t places = side + 2 * padding_ - part + 1;
      if (places > 0) return random.below(places) - padding_;
      throw Error(fmt::format("size: {} {}, but the image has {} and a padding of {}", part, what,
                              side, padding_));
    };
    const int64_t top = start(scene.height(), size_.height, "rows");
    const int64_t left = start(scene.width(), size_.width, "columns");
    crop(scene, top, left, size_.height, size_.width, fill_);
  }

 private:
  Size size_;
  int64_t padding_;
  Fill fill_;
};

/// A part with a random area and aspect ratio, resized (Szegedy et al., 2014), as in torchvision:
/// after ten parts that do not fit, the largest part in the middle whose ratio is allowed.
class RandomResizedCrop : public Augmentation {
 public:
  explicit RandomResizedCrop(const Config& params)
      : size_(get_size(params)),
        scale_(get_range(params, "scale", {.low = 0.08, .high = 1}, {.low = 1e-6, .high = 1})),
        ratio_(get_range(params, "ratio", {.low = 3.0 / 4, .high = 4.0 / 3},
                         {.low = 1e-3, .high = 1e3})) {}

  void apply(Scene& scene, Random& random) const override {
    constexpr int kTries = 10;
    const auto full_height = static_cast<double>(scene.height());
    const auto full_width = static_cast<double>(scene.width());
    const NumberRange logarithms{.low = std::log(ratio_.low), .high = std::log(ratio_.high)};
    for (int i = 0; i < kTries; ++i) {
      const double area = full_height * full_width * scale_.draw(random);
      const double ratio = std::exp(logarithms.draw(random));
      const auto width = static_cast<int64_t>(std::round(std::sqrt(area * ratio)));
      const auto height = static_cast<int64_t>(std::round(std::sqrt(area / ratio)));
      if (width < 1 || height < 1 || width > scene.width() || height > scene.height()) continue;
      const int64_t top = random.below(scene.height() - height + 1);
      const int64_t left = random.below(scene.width() - width + 1);
      return cut(scene, top, left, height, width);
    }
    int64_t height = scene.height();
    int64_t width = scene.width();
    if (full_width / full_height < ratio_.low) {
      height = std::llround(full_width / ratio_.low);
    } else if (full_width / full_height > ratio_.high) {
      width = std::llround(full_height * ratio_.high);
    }
    cut(scene, (scene.height() - height) / 2, (scene.width() - width) / 2, height, width);
  }

 private:
  void cut(Scene& scene, int64_t top, int64_t left, int64_t height, int64_t width) const {
    crop(scene, top, left, height, width, kBlack);
    resize(scene, size_.height, size_.width);
  }

  Size size_;
  NumberRange scale_;
  NumberRange ratio_;
};

class RandomAffine : public Augmentation {
 public:
  explicit RandomAffine(const Config& params)
      : degrees_(get_spread(params, "degrees", 0, {.low = -180, .high = 180})),
        scale_(get_range(params, "scale", {.low = 1, .high = 1}, {.low = 1e-3, .high = 1e3})),
        shear_(get_spread(params, "shear", 0, {.low = -80, .high = 80})),
        fill_(get_fill(params, kBlack)) {
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
      : distortion_(get_chance(params, "distortion_scale", 0.5)), fill_(get_fill(params, kBlack)) {}

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

/// See camera_map.
class OpticalDistortion : public Augmentation {
 public:
  explicit OpticalDistortion(const Config& params)
      : strength_(
            get_range(params, "strength", {.low = -0.05, .high = 0.05}, {.low = -1, .high = 1})) {}
  void apply(Scene& scene, Random& random) const override {
    transform(scene, camera_map(scene.height(), scene.width(), strength_.draw(random)));
  }

 private:
  NumberRange strength_;
};

const Parameter kSize{"size", "", "[height, width], or the side of a square"};
const Parameter kFill{"fill", "-1.0", "what images show beyond their border; repeat: the border"};

STEPOP_REGISTER_AUGMENTATION(
    RandomHorizontalFlip,
    {"Left and right are exchanged.",
     {{"p", "0.5", "the chance"},
      {"swap", "null", "keypoints that change places, such as left and right: [[2, 5], [3, 6]]"}}});
STEPOP_REGISTER_AUGMENTATION(RandomVerticalFlip,
                             {"Top and bottom are exchanged.", {{"p", "0.5", "the chance"}}});
STEPOP_REGISTER_AUGMENTATION(RandomRotate90, {"Turned by 0 to 3 quarters of a circle.", {}});
STEPOP_REGISTER_AUGMENTATION(Resize, {"Resized with antialiasing; no randomness.", {kSize}});
STEPOP_REGISTER_AUGMENTATION(CenterCrop,
                             {"The part in the middle; no randomness.", {kSize, kFill}});
STEPOP_REGISTER_AUGMENTATION(
    RandomCrop, {"A part at a random place.",
                 {kSize, {"padding", "0", "pixels that are added to each side before"}, kFill}});
STEPOP_REGISTER_AUGMENTATION(RandomResizedCrop,
                             {"A part with a random area and shape, resized.",
                              {kSize,
                               {"scale", "[0.08, 1]", "share of the image's area"},
                               {"ratio", "[0.75, 1.3333]", "width by height"}}});
STEPOP_REGISTER_AUGMENTATION(
    RandomAffine,
    {"Turned, moved, enlarged and sheared about the middle.",
     {{"degrees", "0.0", "turns by -degrees to degrees, or [lowest, highest]; clockwise"},
      {"translate", "[0, 0]", "moves by up to these shares of width and height"},
      {"scale", "[1, 1]", "enlarges by"},
      {"shear", "0.0", "shears by -shear to shear degrees along x, or [lowest, highest]"},
      kFill}});
STEPOP_REGISTER_AUGMENTATION(RandomPerspective,
                             {"As seen from elsewhere: each corner moves inwards.",
                              {{"p", "0.5", "the chance"},
                               {"distortion_scale", "0.5", "by up to this share of half a side"},
                               kFill}});
STEPOP_REGISTER_AUGMENTATION(ElasticTransform,
                             {"Smooth noise moves the pixels, as in albumentations.",
                              {{"alpha", "300.0", "strength; 1 moves less than a pixel"},
                               {"sigma", "8.0", "smoothness, in pixels"}}});
STEPOP_REGISTER_AUGMENTATION(OpticalDistortion, {"As through a lens.",
                                                 {{"strength", "[-0.05, 0.05]",
                                                   "-1 to 1; above 0 shrinks the borders"}}});

}  // namespace
}  // namespace stepop
