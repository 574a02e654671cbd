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
inline constexpr Colour kFaintInk{214, 214, 214};  ///< Lines of a grid.
inline constexpr Colour kPaper{246, 246, 246};     ///< What is empty.

/// `share` in [0, 1] as a colour of viridis (van der Walt and Smith, 2015), which colour-blind
/// readers can distinguish and whose lightness grows evenly: dark violet is 0, yellow is 1.
Colour viridis(double share);

/// Black or white, whichever is read better on that colour.
Colour ink_on(Colour background);

/// A picture that is drawn pixel by pixel; what lies outside of it is cut off. Positions count
/// from the top left.
class Canvas {
 public:
  Canvas(int64_t width, int64_t height, Colour background = kWhite);

  int64_t width() const { return pixels_.size(1); }
  int64_t height() const { return pixels_.size(0); }

  void fill(int64_t left, int64_t top, int64_t width, int64_t height, Colour colour);

  /// `picture` is uint8 [H, W, 1 or 3] on the CPU.
  void draw(int64_t left, int64_t top, const at::Tensor& picture);

  /// Text in one line, each of its pixels `scale` large; `pixel_width` and `pixel_height` give its
  /// size.
  void text(int64_t left, int64_t top, std::string_view text, Colour colour = kInk, int scale = 2);
  /// The same read from the bottom to the top: turned to the left by a quarter.
  void text_upwards(int64_t left, int64_t top, std::string_view text, Colour colour = kInk,
                    int scale = 2);

  /// What was drawn: uint8 [height, width, 3].
  const at::Tensor& picture() const { return pixels_; }
  std::string png() const;

 private:
  at::Tensor pixels_;  ///< uint8 [height, width, 3]
};

/// The pixels of a character of the font, with the free column behind it and, in the last row, the
/// ends of letters such as g.
inline constexpr int kGlyphWidth = 6;
inline constexpr int kGlyphHeight = 8;

/// Whether the pixel at column `x` and row `y` of a character is drawn. What is not ASCII looks
/// like a question mark.
bool glyph_pixel(char character, int x, int y);

int64_t pixel_width(std::string_view text, int scale = 2);
int64_t pixel_height(int scale = 2);

/// The text, or its beginning with two dots when it is wider than that. A character of UTF-8 that
/// is not ASCII becomes a question mark.
std::string fit_text(const std::string& text, int64_t width, int scale = 2);

}  // namespace stepop
