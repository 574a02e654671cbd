#include "runtime/core/pictures/canvas.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

/// Viridis at each eighth of its range.
constexpr std::array<Colour, 9> kViridis{{{0x44, 0x01, 0x54},
                                          {0x47, 0x2d, 0x7b},
                                          {0x3b, 0x52, 0x8b},
                                          {0x2c, 0x72, 0x8e},
                                          {0x21, 0x91, 0x8c},
                                          {0x28, 0xae, 0x80},
                                          {0x5e, 0xc9, 0x62},
                                          {0xad, 0xdc, 0x30},
                                          {0xfd, 0xe7, 0x25}}};

constexpr int kGlyphsPerBlock = 16;

/// ASCII from the space on: 16 glyphs side by side in a block of eight rows, each followed by an
/// empty column.
constexpr std::array<std::array<const char*, kGlyphHeight>, 6> kBlocks{{
    // clang-format off
    {{
        "        #    # #          #   ##  #  ##     #      #   #                                      # ",
        "        #    # #   # #   #### ##  # #  #    #     #     #     #     #                         # ",
        "        #    # #  ##### # #      #  #  #    #    #       #  # # #   #                        #  ",
        "        #          # #   ###    #    ##          #       #   ###  #####        ###          #   ",
        "        #         #####   # #  #    # # #        #       #  # # #   #                      #    ",
        "                   # #  ####  #  ## #  #          #     #     #     #     ##         ##   #     ",
        "        #                 #   #  ##  ## #          #   #                  #          ##   #     ",
        "                                                                         #                      ",
    }},
    {{
        " ###    #    ###   ###     #  #####   ##  #####  ###   ###                                 ###  ",
        "#   #  ##   #   # #   #   ##  #      #        # #   # #   #                #         #    #   # ",
        "#   #   #       #     #  # #  ####  #        #  #   # #   #   #     #     #   ####    #       # ",
        "# # #   #      #    ##  #  #      # ####     #   ###   ####              #             #     #  ",
        "#   #   #     #       # #####     # #   #   #   #   #     #               #   ####    #     #   ",
        "#   #   #    #    #   #    #  #   # #   #   #   #   #    #    #     #      #         #          ",
        " ###   ###  #####  ###     #   ###   ###    #    ###   ##           #                       #   ",
        "                                                                   #                            ",
    }},
    {{
        " ###   ###  ####   ###  ####  ##### #####  ###  #   #  ###    ### #   # #     #   # #   #  ###  ",
        "#   # #   # #   # #   # #   # #     #     #   # #   #   #      #  #  #  #     ## ## ##  # #   # ",
        "# ### #   # #   # #     #   # #     #     #     #   #   #      #  # #   #     # # # # # # #   # ",
        "# # # ##### ####  #     #   # ####  ####  # ### #####   #      #  ##    #     # # # # # # #   # ",
        "# ### #   # #   # #     #   # #     #     #   # #   #   #      #  # #   #     #   # #  ## #   # ",
        "#     #   # #   # #   # #   # #     #     #   # #   #   #   #  #  #  #  #     #   # #   # #   # ",
        " ###  #   # ####   ###  ####  ##### #      ###  #   #  ###   ##   #   # ##### #   # #   #  ###  ",
        "                                                                                                ",
    }},
    {{
        "####   ###  ####   #### ##### #   # #   # #   # #   # #   # #####  ###  #      ###    #         ",
        "#   # #   # #   # #       #   #   # #   # #   # #   # #   #     #  #    #        #   # #        ",
        "#   # #   # #   # #       #   #   # #   # #   #  # #   # #     #   #     #       #  #   #       ",
        "####  #   # ####   ###    #   #   # #   # # # #   #     #     #    #      #      #              ",
        "#     # # # # #       #   #   #   #  # #  # # #  # #    #    #     #       #     #              ",
        "#     #  #  #  #      #   #   #   #  # #  ## ## #   #   #   #      #        #    #              ",
        "#      ## # #   # ####    #    ###    #   #   # #   #   #   #####  ###      #  ###              ",
        "                                                                                          ##### ",
    }},
    {{
        " #          #               #         ##        #       #      #   #     ##                     ",
        "  #         #               #        #          #                  #      #                     ",
        "       ###  ####   ####  ####  ###  ####   #### ####   ##     ##   #  #   #   ## #  ####   ###  ",
        "          # #   # #     #   # #   #  #    #   # #   #   #      #   # #    #   # # # #   # #   # ",
        "       #### #   # #     #   # #####  #    #   # #   #   #      #   ##     #   # # # #   # #   # ",
        "      #   # #   # #     #   # #      #     #### #   #   #      #   # #    #   # # # #   # #   # ",
        "       #### ####   ####  ####  ###   #        # #   #  ###     #   #  #  ###  # # # #   #  ###  ",
        "                                           ###               ##                                 ",
    }},
    {{
        "                         #                                           ##   #   ##                ",
        "                         #                                          #     #     #               ",
        "####   #### # ##   #### ####  #   # #   # #   # #   # #   # #####   #     #     #    #          ",
        "#   # #   # ##  # #      #    #   # #   # # # #  # #  #   #    #   #      #      #  # # #       ",
        "#   # #   # #      ###   #    #   # #   # # # #   #   #   #   #     #     #     #      #        ",
        "####   #### #         #  #    #   #  # #  # # #  # #   ####  #      #     #     #               ",
        "#         # #     ####    ##   ####   #    # #  #   #     # #####    ##   #   ##                ",
        "#         #                                            ###                                      ",
    }},
    // clang-format on
}};

uint8_t between(uint8_t a, uint8_t b, double share) {
  return static_cast<uint8_t>(std::lround(a + share * (b - a)));
}

}  // namespace

bool glyph_pixel(char character, int x, int y) {
  const int code = static_cast<unsigned char>(character);
  const int place = (code < 32 || code > 126 ? '?' : code) - ' ';
  const char* row = kBlocks[static_cast<size_t>(place / kGlyphsPerBlock)][static_cast<size_t>(y)];
  return row[place % kGlyphsPerBlock * kGlyphWidth + x] == '#';
}

Colour viridis(double share) {
  constexpr auto kLast = static_cast<double>(kViridis.size() - 1);
  const double place = std::isnan(share) ? 0 : std::clamp(share, 0.0, 1.0) * kLast;
  const auto below = static_cast<size_t>(std::min(place, kLast - 1));
  const double rest = place - static_cast<double>(below);
  const Colour& a = kViridis[below];
  const Colour& b = kViridis[below + 1];
  return {between(a.red, b.red, rest), between(a.green, b.green, rest),
          between(a.blue, b.blue, rest)};
}

Colour ink_on(Colour background) {
  const double light = 0.299 * background.red + 0.587 * background.green + 0.114 * background.blue;
  return light > 140 ? Colour{0, 0, 0} : kWhite;
}

Canvas::Canvas(int64_t width, int64_t height, Colour background)
    : pixels_(at::empty({height, width, 3}, at::kByte)) {
  fill(0, 0, width, height, background);
}

void Canvas::fill(int64_t left, int64_t top, int64_t width, int64_t height, Colour colour) {
  const int64_t right = std::min(left + width, this->width());
  const int64_t bottom = std::min(top + height, this->height());
  left = std::max<int64_t>(left, 0);
  for (int64_t y = std::max<int64_t>(top, 0); y < bottom; ++y) {
    auto* pixel = pixels_.mutable_data_ptr<uint8_t>() + 3 * (y * this->width() + left);
    for (int64_t x = left; x < right; ++x) {
      *pixel++ = colour.red;
      *pixel++ = colour.green;
      *pixel++ = colour.blue;
    }
  }
}

void Canvas::draw(int64_t left, int64_t top, const at::Tensor& picture) {
  const at::Tensor source = picture.contiguous();
  const int64_t channels = source.size(2);
  const auto* pixel = source.const_data_ptr<uint8_t>();
  for (int64_t y = 0; y < source.size(0); ++y) {
    for (int64_t x = 0; x < source.size(1); ++x, pixel += channels) {
      const bool is_grey = channels == 1;
      fill(left + x, top + y, 1, 1, {pixel[0], pixel[is_grey ? 0 : 1], pixel[is_grey ? 0 : 2]});
    }
  }
}

void Canvas::text(int64_t left, int64_t top, std::string_view text, Colour colour, int scale) {
  for (const char character : text) {
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x) {
        if (!glyph_pixel(character, x, y)) continue;
        fill(left + x * scale, top + y * scale, scale, scale, colour);
      }
    }
    left += kGlyphWidth * scale;
  }
}

void Canvas::text_upwards(int64_t left, int64_t top, std::string_view text, Colour colour,
                          int scale) {
  int64_t bottom = top + pixel_width(text, scale);
  for (const char character : text) {
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x) {
        if (!glyph_pixel(character, x, y)) continue;
        fill(left + y * scale, bottom - (x + 1) * scale, scale, scale, colour);
      }
    }
    bottom -= kGlyphWidth * scale;
  }
}

std::string Canvas::png() const { return encode_png(pixels_); }

int64_t pixel_width(std::string_view text, int scale) {
  return text.empty() ? 0 : (static_cast<int64_t>(text.size()) * kGlyphWidth - 1) * scale;
}

int64_t pixel_height(int scale) { return kGlyphHeight * scale; }

std::string fit_text(const std::string& text, int64_t width, int scale) {
  std::string cut;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool continues = byte >= 0x80 && byte < 0xc0;
    if (!continues) cut += byte < 0x80 ? c : '?';
  }
  if (pixel_width(cut, scale) <= width) return cut;
  while (!cut.empty() && pixel_width(cut + "..", scale) > width) cut.pop_back();
  return cut.empty() ? "" : cut + "..";
}

}  // namespace stepop
