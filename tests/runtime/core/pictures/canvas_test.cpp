#include "runtime/core/pictures/canvas.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace pictures_canvas_test {

/// The pixels of one channel, 0 to 255.
at::Tensor pixels(const Canvas& canvas) {
  return decode_image(canvas.png(), "canvas")[0].add(1).mul(127.5).round().to(at::kLong);
}

TEST_CASE("what lies outside of a canvas is cut off") {
  Canvas canvas(6, 4, Colour{0, 0, 0});
  canvas.text(-3, 2, "Mg");
  canvas.text_upwards(3, -4, "Mg");
  canvas.fill(0, 0, 6, 4, Colour{0, 0, 0});
  canvas.fill(-2, -1, 4, 3, kWhite);
  canvas.fill(5, 3, 100, 100, kWhite);
  const at::Tensor found = pixels(canvas);
  CHECK(found[0][0].item<int64_t>() == 255);
  CHECK(found[0][5].item<int64_t>() == 0);
  CHECK(found[3][5].item<int64_t>() == 255);
}

TEST_CASE("every printable character has a look of its own") {
  std::vector<std::string> looks;
  for (int code = 32; code < 127; ++code) {
    std::string look;
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x)
        look += glyph_pixel(static_cast<char>(code), x, y) ? '#' : '.';
      CHECK_FALSE(glyph_pixel(static_cast<char>(code), kGlyphWidth - 1, y));
    }
    CHECK((std::find(looks.begin(), looks.end(), look) == looks.end()));
    looks.push_back(look);
  }
  CHECK(glyph_pixel('\xe4', 2, 0) == glyph_pixel('?', 2, 0));
}

TEST_CASE("text that is turned is the same text") {
  Canvas flat(pixel_width("Ab7", 1), pixel_height(1));
  flat.text(0, 0, "Ab7", kInk, 1);
  Canvas turned(pixel_height(1), pixel_width("Ab7", 1));
  turned.text_upwards(0, 0, "Ab7", kInk, 1);
  CHECK(pixels(turned).equal(pixels(flat).t().flip(0)));
}

TEST_CASE("text that is too wide is cut") {
  CHECK(fit_text("abcdef", 1000) == "abcdef");
  CHECK(fit_text("abcdef", pixel_width("abcdef") - 1) == "abc..");
  CHECK(fit_text("abcdef", 5) == "");
  CHECK(fit_text("K\xc3\xbcken \xe2\x82\xac", 1000) == "K?ken ?");
}

TEST_CASE("the colours are matplotlib's viridis, and ink is read on each") {
  // matplotlib.cm.viridis([0.0, 0.3, 0.62, 1.0], bytes=True)
  const std::vector<std::pair<double, Colour>> known = {
      {0.0, {68, 1, 84}}, {0.3, {53, 95, 141}}, {0.62, {39, 173, 128}}, {1.0, {253, 231, 36}}};
  for (const auto& [share, colour] : known) {
    CHECK(std::abs(viridis(share).red - colour.red) <= 6);
    CHECK(std::abs(viridis(share).green - colour.green) <= 6);
    CHECK(std::abs(viridis(share).blue - colour.blue) <= 6);
  }
  CHECK(ink_on(viridis(0)).red == 255);
  CHECK(ink_on(viridis(1)).red == 0);
}

}  // namespace pictures_canvas_test
}  // namespace stepop
