#include "runtime/data/datasets/facade.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

/// A colour; each channel is in [0, 255].
struct Light {
  float red = 0;
  float green = 0;
  float blue = 0;
};

Light operator*(Light colour, float factor) {
  return {colour.red * factor, colour.green * factor, colour.blue * factor};
}
Light mix(Light from, Light to, float share) {
  return {from.red + (to.red - from.red) * share, from.green + (to.green - from.green) * share,
          from.blue + (to.blue - from.blue) * share};
}
float limited(float value) { return std::clamp(value, 0.0F, 1.0F); }

/// A picture of planes [3, size, size] in which rectangles are painted, one over the other.
class FacadePicture {
 public:
  FacadePicture(int64_t size, float* values) : size_(size), values_(values) {}

  float pixel() const { return 1 / static_cast<float>(size_); }

  /// Paints `colour_at(x, y)` on the part of each pixel that the rectangle covers.
  template <class ColourAt>
  void paint(const FacadeElement& element, const ColourAt& colour_at) {
    each_pixel(element, [&](int64_t at, float x, float y, float share) {
      const Light colour = colour_at(x, y);
      float* value = values_ + at;
      for (const float part : {colour.red, colour.green, colour.blue}) {
        *value += (part / 127.5F - 1 - *value) * share;
        value += size_ * size_;
      }
    });
  }

  /// Multiplies the light there by `1 - strength`.
  void shade(const FacadeElement& element, float strength) {
    each_pixel(element, [&](int64_t at, float, float, float share) {
      float* value = values_ + at;
      for (int channel = 0; channel < 3; ++channel) {
        *value -= (*value + 1) * strength * share;
        value += size_ * size_;
      }
    });
  }

 private:
  template <class Visit>
  void each_pixel(const FacadeElement& element, const Visit& visit) {
    const auto side = static_cast<float>(size_);
    const float left = element.left * side;
    const float top = element.top * side;
    const float right = element.right * side;
    const float bottom = element.bottom * side;
    const auto first = [&](float edge) {
      return std::clamp<int64_t>(static_cast<int64_t>(std::floor(edge)), 0, size_);
    };
    const auto behind = [&](float edge) {
      return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(edge)), 0, size_);
    };
    for (int64_t row = first(top); row < behind(bottom); ++row) {
      const auto y = static_cast<float>(row);
      const float rows = std::min(y + 1, bottom) - std::max(y, top);
      for (int64_t column = first(left); column < behind(right); ++column) {
        const auto x = static_cast<float>(column);
        const float share = rows * (std::min(x + 1, right) - std::max(x, left));
        visit(row * size_ + column, (x + 0.5F) / side, (y + 0.5F) / side, share);
      }
    }
  }

  int64_t size_;
  float* values_;
};

/// What is drawn within an element: positions there, and lines that are anti-aliased by hand.
class FacadeSurface {
 public:
  FacadeSurface(const FacadeElement& element, float pixel) : element_(element), pixel_(pixel) {}

  /// Positions in [0, 1] from left to right and from top to bottom.
  float across(float x) const { return (x - element_.left) / (element_.right - element_.left); }
  float down(float y) const { return (y - element_.top) / (element_.bottom - element_.top); }

  /// A point's distance from the border, inwards, in shares of the image's side.
  float depth(float x, float y) const {
    return std::min({x - element_.left, element_.right - x, y - element_.top, element_.bottom - y});
  }

  /// The share of a pixel that an upright line covers. Its middle is at `x == middle`; `middle` and
  /// `width` are shares of the element's width.
  float upright(float x, float middle, float width) const {
    const float whole = element_.right - element_.left;
    return line((across(x) - middle) * whole, width * whole);
  }
  /// The same for a horizontal line, in shares of the element's height.
  float level(float y, float middle, float width) const {
    const float whole = element_.bottom - element_.top;
    return line((down(y) - middle) * whole, width * whole);
  }
  /// The same for a frame along the border, in shares of the image's side.
  float frame(float x, float y, float width) const {
    return limited((width - depth(x, y)) / pixel_ + 0.5F);
  }

  /// The same for parallel lines every `period`, the first at 0, all in shares of the image's side.
  /// Lines that are too close for the pixels fade into their mean.
  float lines(float position, float period, float width) const {
    const float from_line = position - period * std::round(position / period);
    const float sharpness = limited(period / pixel_ - 1.5F);
    return width / period + (line(from_line, width) - width / period) * sharpness;
  }
  /// `count` lines across the width, or the height, of the element.
  float uprights(float x, int count, float width) const {
    const float whole = element_.right - element_.left;
    return lines(x - element_.left, whole / static_cast<float>(count), width * whole);
  }
  float levels(float y, int count, float width) const {
    const float whole = element_.bottom - element_.top;
    return lines(y - element_.top, whole / static_cast<float>(count), width * whole);
  }

 private:
  /// The share of a pixel that a line covers; `distance` is from the line's middle, in shares of
  /// the side.
  float line(float distance, float width) const {
    return limited((0.5F * (width + pixel_) - std::abs(distance)) / pixel_) *
           std::min(1.0F, width / pixel_);
  }

  FacadeElement element_;
  float pixel_;
};

constexpr Light kStone{222, 214, 196};
constexpr Light kGlass{46, 66, 88};
constexpr Light kPaleGlass{150, 178, 196};

Light sky(float y) { return mix({96, 150, 214}, {214, 228, 238}, limited(1.4F * y)); }

/// Bricks or plaster, brighter to the left; each floor is a little darker towards its lower edge.
class FacadeWall {
 public:
  FacadeWall(const Facade& facade, const FacadeSurface& surface)
      : facade_(facade), surface_(surface) {}

  Light operator()(float x, float y) const {
    const auto& floors = facade_.floors;
    size_t floor = 0;
    while (floor + 2 < floors.size() && y >= floors[floor + 1]) ++floor;
    const float height = floors[floor + 1] - floors[floor];
    const float down = (y - floors[floor]) / height;
    const float light = 1.06F - 0.2F * surface_.across(x) - 0.1F * limited(down);
    if (!facade_.is_brick) return Light{226, 190, 128} * light;
    const float course = height / kCourses;
    const float row = std::floor(down * kCourses);
    const bool is_shifted = std::fmod(row + kCourses, 2.0F) == 1.0F;
    const float joints =
        std::max(surface_.lines(y - floors[floor], course, 0.2F * course),
                 surface_.lines(x + (is_shifted ? course : 0), 2 * course, 0.2F * course));
    return mix({168, 78, 58}, {206, 176, 158}, joints) * light;
  }

 private:
  static constexpr float kCourses = 8;  ///< Rows of bricks in one floor.

  const Facade& facade_;
  const FacadeSurface& surface_;
};

Light window_colour(const FacadeSurface& surface, float x, float y) {
  const float across = surface.across(x);
  const float down = surface.down(y);
  const float streak = limited(4 * (0.16F - std::abs(across + 0.7F * down - 0.75F)));
  Light colour = mix(kPaleGlass, kGlass, limited(0.25F + down));
  colour = mix(colour, {232, 240, 246}, streak);
  const float bars = std::max({surface.frame(x, y, 0.011F), surface.upright(x, 0.5F, 0.12F),
                               surface.level(y, 0.36F, 0.07F)});
  return mix(colour, {242, 240, 232}, bars);
}

Light door_colour(const FacadeSurface& surface, float x, float y) {
  const float across = surface.across(x);
  const float down = surface.down(y);
  if (down < 0.2F) return mix(kGlass, {60, 38, 26}, surface.frame(x, y, 0.01F));
  const float wing = std::abs(across - 0.5F);
  const bool is_panel = std::abs(wing - 0.25F) < 0.13F &&
                        (std::abs(down - 0.4F) < 0.13F || std::abs(down - 0.77F) < 0.15F);
  const Light wood = mix({122, 74, 44}, {92, 54, 32}, down);
  const Light colour = is_panel ? wood * 0.72F : wood;
  return mix(colour, {52, 32, 22},
             std::max(surface.frame(x, y, 0.008F), surface.upright(x, 0.5F, 0.05F)));
}

Light shop_colour(const FacadeSurface& surface, float x, float y) {
  const float across = surface.across(x);
  const float down = surface.down(y);
  if (down < 0.26F) {  // the awning
    const bool is_red = static_cast<int>(across * 8) % 2 == 0;
    return (is_red ? Light{190, 44, 48} : Light{240, 234, 222}) * (1.05F - 1.2F * down);
  }
  const float streak = limited(4 * (0.12F - std::abs(across + 0.6F * down - 0.9F)));
  const Light lit = mix({250, 214, 140}, {122, 84, 60}, limited(1.3F * down - 0.3F));
  return mix(mix(lit, {255, 246, 224}, streak), {44, 52, 50}, surface.frame(x, y, 0.01F));
}

Light colour_of(FacadeClass kind, const FacadeSurface& surface, float x, float y) {
  const float across = surface.across(x);
  const float down = surface.down(y);
  switch (kind) {
    case FacadeClass::kWindow:
      return window_colour(surface, x, y);
    case FacadeClass::kDoor:
      return door_colour(surface, x, y);
    case FacadeClass::kShop:
      return shop_colour(surface, x, y);
    case FacadeClass::kBlind: {
      const float slats = surface.levels(y, 5, 0.07F);
      return mix({218, 206, 178}, {150, 138, 112}, slats);
    }
    case FacadeClass::kBalcony: {
      const float rail = std::max({surface.level(y, 0.06F, 0.12F), down > 0.84F ? 1.0F : 0.0F,
                                   surface.uprights(x, 6, 0.06F)});
      return mix({112, 112, 118}, {34, 36, 42}, rail);
    }
    case FacadeClass::kPillar:  // round, lit from the left
      return kStone * (1.08F - 0.9F * (across - 0.3F) * (across - 0.3F) - 0.08F * across);
    case FacadeClass::kCornice:
      return kStone * (1.1F - 0.3F * down - 0.12F * surface.levels(y, 3, 0.12F));
    case FacadeClass::kMolding:
      return kStone * (1.08F - 0.34F * down);
    default:  // sills and decorations
      return kStone * (1.1F - 0.24F * down - 0.06F * across);
  }
}

/// How far an element stands out from the wall. Such an element casts a shadow to the lower right.
float relief(FacadeClass kind) {
  switch (kind) {
    case FacadeClass::kCornice:
      return 0.03F;
    case FacadeClass::kBalcony:
      return 0.022F;
    case FacadeClass::kSill:
    case FacadeClass::kDecoration:
    case FacadeClass::kPillar:
    case FacadeClass::kMolding:
      return 0.013F;
    default:
      return 0;
  }
}

constexpr FacadeElement kWholePicture{};

}  // namespace

std::array<uint8_t, 3> label_colour(FacadeClass kind) {
  static constexpr std::array<std::array<uint8_t, 3>, kFacadeClasses> kColours = {{
      {0, 0, 170},
      {0, 0, 255},
      {0, 85, 255},
      {0, 170, 255},
      {0, 255, 255},
      {85, 255, 170},
      {170, 255, 85},
      {255, 255, 0},
      {255, 170, 0},
      {255, 85, 0},
      {255, 0, 0},
      {170, 0, 0},
  }};
  return kColours.at(static_cast<size_t>(kind));
}

void draw_label_map(const Facade& facade, int64_t size, float* values) {
  std::fill_n(values, 3 * size * size, -1.0F);
  FacadePicture picture(size, values);
  const auto paint = [&](const FacadeElement& element) {
    const auto [red, green, blue] = label_colour(element.kind);
    const Light colour{static_cast<float>(red), static_cast<float>(green),
                       static_cast<float>(blue)};
    picture.paint(element, [&](float, float) { return colour; });
  };
  paint(kWholePicture);
  for (const FacadeElement& element : facade.elements) paint(element);
}

void draw_classes(const Facade& facade, int64_t size, int64_t* classes) {
  std::fill_n(classes, size * size, static_cast<int64_t>(FacadeClass::kBackground));
  const auto side = static_cast<float>(size);
  // The first pixel whose centre is not before an edge.
  const auto first = [&](float edge) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(edge * side - 0.5F)), 0, size);
  };
  for (const FacadeElement& element : facade.elements) {
    const int64_t left = first(element.left);
    const int64_t width = std::max<int64_t>(first(element.right) - left, 0);
    for (int64_t y = first(element.top); y < first(element.bottom); ++y) {
      std::fill_n(classes + y * size + left, width, static_cast<int64_t>(element.kind));
    }
  }
}

void draw_rendering(const Facade& facade, int64_t size, float* values) {
  std::fill_n(values, 3 * size * size, -1.0F);
  FacadePicture picture(size, values);
  picture.paint(kWholePicture, [](float, float y) { return sky(y); });
  for (const FacadeElement& element : facade.elements) {
    const FacadeSurface surface(element, picture.pixel());
    if (element.kind == FacadeClass::kWall) {
      picture.paint(element, FacadeWall(facade, surface));
      continue;
    }
    const float shadow = relief(element.kind);
    if (shadow > 0) {
      const FacadeElement& wall = facade.elements.front();
      picture.shade({.kind = element.kind,
                     .left = std::max(wall.left, element.left + 0.4F * shadow),
                     .top = element.top + shadow,
                     .right = std::min(wall.right, element.right + 0.4F * shadow),
                     .bottom = element.bottom + shadow},
                    0.4F);
    }
    picture.paint(element,
                  [&](float x, float y) { return colour_of(element.kind, surface, x, y); });
  }
}

}  // namespace stepop
