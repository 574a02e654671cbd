#include "runtime/core/pictures/image_grid.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/canvas.h"
#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

// The size of a thumbnail, in pixels.
constexpr int64_t kMostSide = 256;
constexpr int64_t kGap = 14;
constexpr int64_t kLineGap = 2;

at::Tensor resized(const at::Tensor& image, int64_t least_side) {
  const int64_t height = image.size(2);
  const int64_t width = image.size(3);
  const int64_t longest = std::max(height, width);
  if (longest > kMostSide) {
    return at::adaptive_avg_pool2d(image, {std::max<int64_t>(height * kMostSide / longest, 1),
                                           std::max<int64_t>(width * kMostSide / longest, 1)});
  }
  const int64_t factor = std::max<int64_t>((least_side + longest - 1) / longest, 1);
  return image.repeat_interleave(factor, 2).repeat_interleave(factor, 3);
}

/// Writes `image`, float [1 or 3, H, W], into `target`, uint8 [H, W, 1 or 3], a part of a grid.
void draw(const at::Tensor& image, const at::Tensor& target) {
  const int64_t stored = image.size(0);
  const int64_t channels = target.size(2);
  const int64_t plane = image.size(1) * image.size(2);
  const auto* values = image.const_data_ptr<float>();
  for (int64_t y = 0; y < image.size(1); ++y) {
    auto* pixel = target.mutable_data_ptr<uint8_t>() + y * target.stride(0);
    for (int64_t x = 0; x < image.size(2); ++x, ++values, pixel += channels) {
      bool is_nan = false;
      for (int64_t c = 0; c < channels; ++c) {
        const float value = values[stored == 1 ? 0 : c * plane];
        is_nan = is_nan || std::isnan(value);
        pixel[c] = is_nan ? 0 : to_byte(value);
      }
      if (is_nan) pixel[0] = pixel[2] = 255, pixel[1] = 0;  // magenta
    }
  }
}

constexpr int64_t kMostPlanes = 16;

/// Draws RGBA over a board of light and dark grey squares.
at::Tensor over_board(const at::Tensor& images) {
  const int64_t side = std::max<int64_t>(std::min(images.size(2), images.size(3)) / 8, 1);
  const at::Tensor y = at::arange(images.size(2)).div(side, "floor").unsqueeze(1);
  const at::Tensor x = at::arange(images.size(3)).div(side, "floor").unsqueeze(0);
  const at::Tensor board = y.add(x).remainder(2).to(at::kFloat).mul(0.4).add(0.2);  // 0.2 or 0.6
  const at::Tensor alpha = images.slice(1, 3, 4).add(1).div(2).clamp(0, 1);
  return images.slice(1, 0, 3).clamp(-1, 1).mul(alpha).add(board.mul(alpha.neg().add(1)));
}

/// The first channels of each image, in grey and side by side.
at::Tensor planes(const at::Tensor& images) {
  const int64_t count = std::min(images.size(1), kMostPlanes);
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(count)));
  const int64_t rows = (count + columns - 1) / columns;
  const int64_t height = images.size(2);
  const int64_t width = images.size(3);
  at::Tensor tiles = at::full({images.size(0), 1, rows * height, columns * width}, -1.0);
  for (int64_t i = 0; i < count; ++i) {
    tiles.select(1, 0)
        .slice(1, i / columns * height, (i / columns + 1) * height)
        .slice(2, i % columns * width, (i % columns + 1) * width)
        .copy_(images.select(1, i));
  }
  return tiles;
}

}  // namespace

bool is_image_batch(const at::Tensor& images) {
  if (!images.defined() || !images.is_floating_point() || images.dim() != 4) return false;
  const auto is_usual = [](int64_t channels) {
    return channels == 1 || channels == 3 || channels == 4;
  };
  // Images with the channels last would become a pile of thin stripes.
  return images.numel() > 0 && (is_usual(images.size(1)) || !is_usual(images.size(3)));
}

void check_images(const at::Tensor& images) {
  if (!is_image_batch(images)) {
    throw Error(fmt::format("images to show are floating-point [B, C, H, W] in [-1, 1], found {}",
                            describe_tensor(images)));
  }
}

namespace {

/// Converts images of any number of channels to float images on the CPU with 1 or 3 channels.
at::Tensor as_shown(const at::Tensor& images) {
  check_images(images);
  const at::Tensor batch = images.detach().to(at::kCPU, at::kFloat).contiguous();
  const int64_t channels = batch.size(1);
  if (channels == 1 || channels == 3) return batch;
  return (channels == 4 ? over_board(batch) : planes(batch)).contiguous();
}

}  // namespace

at::Tensor image_grid(const at::Tensor& images) {
  const at::Tensor batch = as_shown(images);
  const int64_t channels = batch.isnan().any().item<bool>() ? 3 : batch.size(1);
  const int64_t height = batch.size(2);
  const int64_t width = batch.size(3);
  const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(batch.size(0))));
  const int64_t rows = (batch.size(0) + columns - 1) / columns;
  at::Tensor grid = at::zeros({rows * height, columns * width, channels}, at::kByte);

  for (int64_t i = 0; i < batch.size(0); ++i) {
    const int64_t top = i / columns * height;
    const int64_t left = i % columns * width;
    draw(batch[i], grid.slice(0, top, top + height).slice(1, left, left + width));
  }
  return grid;
}

std::string image_grid_png(const at::Tensor& images) { return encode_png(image_grid(images)); }

at::Tensor thumbnail(const at::Tensor& image, int64_t least_side) {
  return image_grid(resized(as_shown(image), least_side));
}

at::Tensor captioned_picture(const std::vector<CaptionedImage>& images, int64_t columns) {
  const auto count = static_cast<int64_t>(images.size());
  const bool is_square = columns == 0;
  if (is_square) {
    columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  }
  const int64_t line = pixel_height() + kLineGap;
  int64_t shown_height = 0;
  int64_t width = 0;
  size_t lines_below = 0;
  for (const auto& image : images) {
    shown_height = std::max(shown_height, image.image.size(0));
    width = std::max(width, image.image.size(1));
    lines_below = std::max(lines_below, image.lines.size());
    for (const auto& text : image.lines) {
      width = std::max(width, std::min(pixel_width(text), kThumbnailSide));
    }
  }
  if (is_square) width = std::max(width, kThumbnailSide);
  const int64_t height = shown_height + kLineGap + static_cast<int64_t>(lines_below) * line;
  Canvas canvas(kGap + columns * (width + kGap),
                kGap + (count + columns - 1) / columns * (height + kGap));
  for (int64_t i = 0; i < count; ++i) {
    const auto& [image, lines] = images[static_cast<size_t>(i)];
    const int64_t left = kGap + i % columns * (width + kGap);
    int64_t top = kGap + i / columns * (height + kGap);
    canvas.draw(left, top, image);
    top += image.size(0) + kLineGap + 2;
    for (const auto& text : lines) {
      canvas.text(left, top, fit_text(text, width));
      top += line;
    }
  }
  return canvas.picture();
}

std::string captioned_grid(const std::vector<CaptionedImage>& images) {
  return encode_png(captioned_picture(images));
}

}  // namespace stepop
