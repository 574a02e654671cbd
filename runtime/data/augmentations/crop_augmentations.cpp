#include <fmt/format.h>

#include <cmath>
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

/// Where a part in the middle of a side begins, as in torchvision: half a pixel is rounded to an
/// even one, and of an odd padding the smaller half comes first.
int64_t begin_in_middle(int64_t side, int64_t part) {
  if (part > side) return -((part - side) / 2);
  return std::llround(std::nearbyint(static_cast<double>(side - part) / 2));
}

class CenterCrop : public Augmentation {
 public:
  explicit CenterCrop(const Config& params)
      : size_(get_size(params)), fill_(get_fill(params, kBlack)) {}
  void apply(Scene& scene, Random&) const override {
    crop(scene, begin_in_middle(scene.height(), size_.height),
         begin_in_middle(scene.width(), size_.width), size_.height, size_.width, fill_);
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
}  // namespace
}  // namespace stepop
