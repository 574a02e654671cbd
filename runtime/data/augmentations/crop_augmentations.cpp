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

void require_size(Parameters& p, Size& size) {
  const Config* config =
      p.describe_required("size", "int | list of int", "[height, width], or the side of a square");
  if (config == nullptr) return;
  const Value* value = config->peek("size");
  const auto sides = value != nullptr && value->is_list()
                         ? config->get<std::vector<int64_t>>("size")
                         : std::vector<int64_t>(2, config->get<int64_t>("size"));
  if (sides.size() != 2 || sides[0] < 1 || sides[1] < 1 || sides[0] > kMostSide ||
      sides[1] > kMostSide) {
    throw config->error("size", fmt::format("expected a side or [height, width], 1 to {}, found {}",
                                            kMostSide, value->describe()));
  }
  size = {sides[0], sides[1]};
}

class RandomHorizontalFlip : public Augmentation {
 public:
  static constexpr double kChance = 0.5;

  struct Params {
    std::vector<std::pair<int64_t, int64_t>> swap;

    void declare(Parameters& p) {
      declare_chance(p, kChance);
      const Config* config = p.describe_optional(
          "swap", "list of list of int",
          "keypoints that change places, such as left and right: [[2, 5], [3, 6]]");
      if (config != nullptr) read_swap(*config);
    }

    void read_swap(const Config& params) {
      const bool is_list = params.peek("swap")->is_list();
      const size_t count = is_list ? params.peek("swap")->as_list().size() : 0;
      for (size_t i = 0; i < count; ++i) {
        const std::string key = fmt::format("swap/{}", i);
        const auto pair = params.get<std::vector<int64_t>>(key);
        if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0) {
          throw params.error(key, "expected the numbers of two keypoints, such as [2, 5]");
        }
        swap.emplace_back(pair[0], pair[1]);
      }
      if (count == 0) throw params.error("swap", "expected pairs of keypoints, such as [[2, 5]]");
    }
  };

  explicit RandomHorizontalFlip(const Params& params) : swapped_(params.swap) {}

  double usual_chance() const override { return kChance; }

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
  static constexpr double kChance = 0.5;

  struct Params {
    void declare(Parameters& p) { declare_chance(p, kChance); }
  };

  explicit RandomVerticalFlip(const Params&) {}
  double usual_chance() const override { return kChance; }
  void apply(Scene& scene, Random&) const override { mirror(scene, /*is_horizontal=*/false); }
};

class RandomRotate90 : public Augmentation {
 public:
  explicit RandomRotate90(const Config&) {}
  void apply(Scene& scene, Random& random) const override { turn_quarters(scene, random.below(4)); }
};

class Resize : public Augmentation {
 public:
  struct Params {
    Size size;

    void declare(Parameters& p) { require_size(p, size); }
  };

  explicit Resize(const Params& params) : size_(params.size) {}
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
  struct Params {
    Size size;
    Fill fill;

    void declare(Parameters& p) {
      require_size(p, size);
      add_fill(p, fill);
    }
  };

  explicit CenterCrop(const Params& params) : p_(params) {}
  void apply(Scene& scene, Random&) const override {
    const auto [height, width] = p_.size;
    crop(scene, begin_in_middle(scene.height(), height), begin_in_middle(scene.width(), width),
         height, width, p_.fill);
  }

 private:
  Params p_;
};

class RandomCrop : public Augmentation {
 public:
  struct Params {
    Size size;
    int64_t padding = 0;
    Fill fill;

    void declare(Parameters& p) {
      require_size(p, size);
      p.add("padding", padding, "pixels that are added to each side before",
            at_least(0).at_most(kMostSide));
      add_fill(p, fill);
    }
  };

  explicit RandomCrop(const Params& params) : p_(params) {}

  void apply(Scene& scene, Random& random) const override {
    const int64_t padding = p_.padding;
    const auto start = [&](int64_t side, int64_t part, const char* what) {
      const int64_t places = side + 2 * padding - part + 1;
      if (places > 0) return random.below(places) - padding;
      throw Error(fmt::format("size: {} {}, but the image has {} and a padding of {}", part, what,
                              side, padding));
    };
    const auto [height, width] = p_.size;
    const int64_t top = start(scene.height(), height, "rows");
    const int64_t left = start(scene.width(), width, "columns");
    crop(scene, top, left, height, width, p_.fill);
  }

 private:
  Params p_;
};

/// A part with a random area and aspect ratio, resized (Szegedy et al., 2014), as in torchvision:
/// after ten parts that do not fit, the largest part in the middle whose ratio is allowed.
class RandomResizedCrop : public Augmentation {
 public:
  struct Params {
    Size size;
    NumberRange scale{.low = 0.08, .high = 1};
    NumberRange ratio{.low = 3.0 / 4, .high = 4.0 / 3};

    void declare(Parameters& p) {
      require_size(p, size);
      add_range(p, "scale", scale, "share of the image's area", {.low = 1e-6, .high = 1});
      add_range(p, "ratio", ratio, "width by height", {.low = 1e-3, .high = 1e3});
    }
  };

  explicit RandomResizedCrop(const Params& params)
      : size_(params.size), scale_(params.scale), ratio_(params.ratio) {}

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

STEPOP_REGISTER_AUGMENTATION(RandomHorizontalFlip, {"Left and right are exchanged."});
STEPOP_REGISTER_AUGMENTATION(RandomVerticalFlip, {"Top and bottom are exchanged."});
STEPOP_REGISTER_AUGMENTATION(RandomRotate90, {"Turned by 0 to 3 quarters of a circle.", {}});
STEPOP_REGISTER_AUGMENTATION(Resize, {"Resized with antialiasing; no randomness."});
STEPOP_REGISTER_AUGMENTATION(CenterCrop, {"The part in the middle; no randomness."});
STEPOP_REGISTER_AUGMENTATION(RandomCrop, {"A part at a random place."});
STEPOP_REGISTER_AUGMENTATION(RandomResizedCrop, {"A part with a random area and shape, resized."});
}  // namespace
}  // namespace stepop
