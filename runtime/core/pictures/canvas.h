#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stepop {

struct Colour {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

inline constexpr Colour kWhite{255, 255, 255};
inline constexpr Colour kInk{32, 32, 32};          ///< Text and axes.
inline constexpr Colour kFaintInk{214, 214, 214};  ///< Grid lines.
inline constexpr Colour kPaper{246, 246, 246};     ///< Empty areas.

/// The colour of `share` in [0, 1] in viridis (van der Walt and Smith, 2015), which colour-blind
/// readers can distinguish and whose lightness grows evenly: dark violet is 0, yellow is 1.
Colour viridis(double share);

/// Black or white, whichever is easier to read on that colour.
Colour ink_on(Colour background);

/// A picture that is drawn pixel by pixel; pixels outside it are ignored. Positions count from the
/// top left.
class Canvas {
 public:
  Canvas(int64_t width, int64_t height, Colour background = kWhite);

  int64_t width() const { return pixels_.size(1); }
  int64_t height() const { return pixels_.size(0); }

  void fill(int64_t left, int64_t top, int64_t width, int64_t height, Colour colour);

  /// `picture` is uint8 [H, W, 1 or 3] on the CPU.
  void draw(int64_t left, int64_t top, const at::Tensor& picture);

  /// Draws text in one line, with `scale` by `scale` pixels for each pixel of the font;
  /// `pixel_width` and `pixel_height` give the size.
  void text(int64_t left, int64_t top, std::string_view text, Colour colour = kInk, int scale = 2);
  /// The same from bottom to top, rotated left by 90 degrees.
  void text_upwards(int64_t left, int64_t top, std::string_view text, Colour colour = kInk,
                    int scale = 2);

  /// The picture so far: uint8 [height, width, 3].
  const at::Tensor& picture() const { return pixels_; }
  std::string png() const;

 private:
  at::Tensor pixels_;  ///< uint8 [height, width, 3]
};

/// The pixels of a character of the font, including the empty column after it and, in the last row,
/// the descenders of letters such as g.
inline constexpr int kGlyphWidth = 6;
inline constexpr int kGlyphHeight = 8;

/// Whether the pixel at column `x` and row `y` of a character is drawn. Characters that are not
/// ASCII look like a question mark.
bool glyph_pixel(char character, int x, int y);

int64_t pixel_width(std::string_view text, int scale = 2);
int64_t pixel_height(int scale = 2);

/// The text, or its beginning with two dots if the text is wider than `width`. A UTF-8 character
/// that is not ASCII becomes a question mark.
std::string fit_text(const std::string& text, int64_t width, int scale = 2);

}  // namespace stepop
