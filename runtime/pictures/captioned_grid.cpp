#include "runtime/pictures/captioned_grid.h"

#include <ATen/ops/adaptive_avg_pool2d.h>

#include <algorithm>
#include <cmath>

#include "runtime/pictures/canvas.h"
#include "runtime/pictures/image_grid.h"

namespace stepop {
namespace {

constexpr int64_t kLeastSide = 128;
constexpr int64_t kMostSide = 256;
constexpr int64_t kGap = 14;
constexpr int64_t kLineGap = 2;

at::Tensor resized(const at::Tensor& image) {
  const int64_t height = image.size(2);
  const int64_t width = image.size(3);
  const int64_t longest = std::max(height, width);
  if (longest > kMostSide) {
    return at::adaptive_avg_pool2d(image, {std::max<int64_t>(height * kMostSide / longest, 1),
                                           std::max<int64_t>(width * kMostSide / longest, 1)});
  }
  const int64_t factor = (kLeastSide + longest - 1) / longest;
  return image.repeat_interleave(factor, 2).repeat_interleave(factor, 3);
}

}  // namespace

at::Tensor thumbnail(const at::Tensor& image) { return image_grid(resized(image)); }

std::string captioned_grid(const std::vector<CaptionedImage>& images) {
  const int64_t shown_height = images.front().image.size(0);
  const auto count = static_cast<int64_t>(images.size());
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t line = pixel_height() + kLineGap;
  const int64_t width = std::max(images.front().image.size(1), kLeastSide);
  const int64_t height =
      shown_height + kLineGap + static_cast<int64_t>(images.front().lines.size()) * line;
  Canvas canvas(kGap + columns * (width + kGap),
                kGap + (count + columns - 1) / columns * (height + kGap));
  for (int64_t i = 0; i < count; ++i) {
    const auto& [image, lines] = images[static_cast<size_t>(i)];
    const int64_t left = kGap + i % columns * (width + kGap);
    int64_t top = kGap + i / columns * (height + kGap);
    canvas.draw(left, top, image);
    top += shown_height + kLineGap + 2;
    for (const auto& text : lines) {
      canvas.text(left, top, fit_text(text, width));
      top += line;
    }
  }
  return canvas.png();
}

}  // namespace stepop
