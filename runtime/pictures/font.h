#pragma once

namespace stepop {

/// The pixels of a character of the font in pictures, with the free column behind it and, in the
/// last row, the ends of letters such as g.
inline constexpr int kGlyphWidth = 6;
inline constexpr int kGlyphHeight = 8;

/// Whether the pixel at column `x` and row `y` of a glyph is drawn. What is not ASCII looks like a
/// question mark.
bool glyph_pixel(char character, int x, int y);

}  // namespace stepop
