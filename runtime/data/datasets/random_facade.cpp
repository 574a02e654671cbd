#include <algorithm>
#include <utility>

#include "runtime/data/augmentations/chance.h"
#include "runtime/data/datasets/facade.h"

namespace stepop {
namespace {

float between(Random& random, double low, double high) {
  return static_cast<float>(low + (high - low) * random.uniform());
}

/// What all floors and columns of a building share.
struct FacadeStyle {
  explicit FacadeStyle(Random& random)
      : has_moldings(happens(0.5, random)),
        has_pillars(happens(0.4, random)),
        has_sills(happens(0.7, random)),
        has_decorations(happens(0.35, random)),
        has_shop(happens(0.5, random)),
        blinds(happens(0.5, random) ? 0.4 : 0),
        balconies(happens(0.5, random) ? 0.5 : 0),
        window_width(between(random, 0.46, 0.66)),
        window_height(between(random, 0.5, 0.66)) {}

  bool has_moldings;
  bool has_pillars;
  bool has_sills;
  bool has_decorations;
  bool has_shop;
  double blinds;        ///< The chance that a window has a blind.
  double balconies;     ///< The chance that a floor has balconies.
  float window_width;   ///< As a share of its column.
  float window_height;  ///< As a share of its floor.
};

class FacadeBuilder {
 public:
  explicit FacadeBuilder(Random& random) : random_(random), style_(random) {}

  Facade build() {
    facade_.is_brick = !style_.has_moldings;
    // One by one: compilers evaluate the arguments of a call in different orders.
    const float right = between(random_, 0.88, 1);
    const float top = between(random_, 0.05, 0.28);
    const float left = between(random_, 0, 0.12);
    wall_ = add(FacadeClass::kWall, left, top, right, 1);
    const float cornice = between(random_, 0.035, 0.06);
    const float ground_floor = between(random_, 0.2, 0.26);
    const float above = 1 - ground_floor - (wall_.top + cornice);
    const auto floors = std::max(1, static_cast<int>(above / between(random_, 0.16, 0.26)));
    for (int i = 0; i <= floors; ++i) {
      facade_.floors.push_back(wall_.top + cornice +
                               above * static_cast<float>(i) / static_cast<float>(floors));
    }
    facade_.floors.push_back(1);
    const float width = wall_.right - wall_.left;
    columns_ = std::max(2, static_cast<int>(width / between(random_, 0.16, 0.27)));
    column_ = width / static_cast<float>(columns_);

    if (style_.has_pillars) add_pillars();
    if (style_.has_moldings) add_moldings();
    for (int floor = 0; floor < floors; ++floor) add_floor(static_cast<size_t>(floor));
    add_ground_floor(static_cast<size_t>(floors));
    add(FacadeClass::kCornice, wall_.left - 0.015F, wall_.top, wall_.right + 0.015F,
        wall_.top + cornice);
    return std::move(facade_);
  }

 private:
  FacadeElement add(FacadeClass kind, float left, float top, float right, float bottom) {
    return facade_.elements.emplace_back(
        FacadeElement{.kind = kind, .left = left, .top = top, .right = right, .bottom = bottom});
  }

  void add_pillars() {
    const float half = 0.07F * column_;
    for (int i = 0; i <= columns_; ++i) {
      const float middle = wall_.left + column_ * static_cast<float>(i);
      add(FacadeClass::kPillar, std::max(wall_.left, middle - half), facade_.floors.front(),
          std::min(wall_.right, middle + half), 1);
    }
  }

  void add_moldings() {
    for (size_t i = 1; i + 1 < facade_.floors.size(); ++i) {
      add(FacadeClass::kMolding, wall_.left, facade_.floors[i] - 0.012F, wall_.right,
          facade_.floors[i] + 0.012F);
    }
  }

  void add_floor(size_t floor) {
    const float top = facade_.floors[floor];
    const float height = facade_.floors[floor + 1] - top;
    const bool has_balconies = happens(style_.balconies, random_);
    for (int i = 0; i < columns_; ++i) {
      const float middle = wall_.left + column_ * (static_cast<float>(i) + 0.5F);
      const float half = 0.5F * style_.window_width * column_;
      const float window_top = top + 0.55F * (1 - style_.window_height) * height;
      const float window_bottom = window_top + style_.window_height * height;
      add_window(middle, half, window_top, window_bottom);
      if (has_balconies) {
        add(FacadeClass::kBalcony, middle - 1.35F * half,
            window_bottom - 0.4F * (window_bottom - window_top), middle + 1.35F * half,
            window_bottom + 0.02F);
      } else if (style_.has_sills) {
        add(FacadeClass::kSill, middle - 1.2F * half, window_bottom, middle + 1.2F * half,
            window_bottom + 0.016F);
      }
      if (style_.has_decorations) {
        add(FacadeClass::kDecoration, middle - 1.15F * half, window_top - 0.026F,
            middle + 1.15F * half, window_top - 0.004F);
      }
    }
  }

  void add_window(float middle, float half, float top, float bottom) {
    add(FacadeClass::kWindow, middle - half, top, middle + half, bottom);
    if (!happens(style_.blinds, random_)) return;
    add(FacadeClass::kBlind, middle - half, top, middle + half,
        top + between(random_, 0.25, 0.9) * (bottom - top));
  }

  void add_ground_floor(size_t floor) {
    const float top = facade_.floors[floor];
    const float height = 1 - top;
    const int64_t door = random_.below(columns_);
    for (int i = 0; i < columns_; ++i) {
      const float left = wall_.left + column_ * static_cast<float>(i);
      const float middle = left + 0.5F * column_;
      if (i == door) {
        const float half = 0.26F * column_;
        add(FacadeClass::kDoor, middle - half, top + 0.22F * height, middle + half, 1);
      } else if (style_.has_shop) {
        add(FacadeClass::kShop, left + 0.09F * column_, top + 0.16F * height,
            left + 0.91F * column_, 1 - 0.06F * height);
      } else {
        add_window(middle, 0.5F * style_.window_width * column_, top + 0.25F * height,
                   top + 0.75F * height);
      }
    }
  }

  Random& random_;
  FacadeStyle style_;
  Facade facade_;
  FacadeElement wall_;
  int columns_ = 0;
  float column_ = 0;  ///< The width of one column.
};

}  // namespace

Facade random_facade(Random& random) { return FacadeBuilder(random).build(); }

}  // namespace stepop
