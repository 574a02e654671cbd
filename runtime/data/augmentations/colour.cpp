#include "runtime/data/augmentations/colour.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/webp.h"

namespace stepop {
namespace {

constexpr double kCircle = 6.283185307179586;

/// A colour moved on the colour circle of hexagonal HSV. Each of the circle's six sectors lies
/// between a primary and a secondary colour.
std::array<float, 3> turned(float red, float green, float blue, float sectors) {
  const float most = std::max({red, green, blue});
  const float least = std::min({red, green, blue});
  const float range = most - least;
  if (range <= 0) return {red, green, blue};
  float hue = 0;
  if (most == red) {
    hue = (green - blue) / range;
  } else if (most == green) {
    hue = 2 + (blue - red) / range;
  } else {
    hue = 4 + (red - green) / range;
  }
  hue += sectors;
  if (hue < 0) hue += 6;
  if (hue >= 6) hue -= 6;
  const auto channel = [&](float from) {
    const float place = from + hue < 6 ? from + hue : from + hue - 6;
    return most - range * std::clamp(std::min(place, 4 - place), 0.0F, 1.0F);
  };
  return {channel(5), channel(3), channel(1)};
}

/// Each channel of [1, C, H, W] with its kernel of [C, 1, height, width], inside of the border.
at::Tensor convolved(const at::Tensor& image, const at::Tensor& kernels) {
  return at::conv2d(image, kernels, {}, /*stride=*/1, /*padding=*/at::IntArrayRef{0},
                    /*dilation=*/1, /*groups=*/kernels.size(0));
}

}  // namespace

at::Tensor with_colours(const at::Tensor& image,
                        const std::function<at::Tensor(const at::Tensor&)>& change) {
  const int64_t channels = image.size(0);
  const auto changed = [&](int64_t first, int64_t count) {
    return change((image.narrow(0, first, count) + 1).div_(2)).mul(2).sub_(1);
  };
  std::vector<at::Tensor> parts;
  if (channels == 3 || channels == 4) {
    parts.push_back(changed(0, 3));
    if (channels == 4) parts.push_back(image.narrow(0, 3, 1));
  } else {
    for (int64_t i = 0; i < channels; ++i) parts.push_back(changed(i, 1));
  }
  return at::cat(parts);
}

at::Tensor grey_of(const at::Tensor& image) {
  if (image.size(0) != 3) return image.mean(0, /*keepdim=*/true);
  return (image[0] * 0.299 + image[1] * 0.587 + image[2] * 0.114).unsqueeze(0);
}

at::Tensor with_brightness(const at::Tensor& image, double factor) {
  return (image * factor).clamp_(0, 1);
}

at::Tensor with_contrast(const at::Tensor& image, double factor) {
  const double mean = grey_of(image).mean().item<double>();
  return (image * factor).add_((1 - factor) * mean).clamp_(0, 1);
}

at::Tensor with_saturation(const at::Tensor& image, double factor) {
  return (image * factor).add_(grey_of(image), 1 - factor).clamp_(0, 1);
}

at::Tensor with_hue(const at::Tensor& image, double turn) {
  const at::Tensor from = image.contiguous();
  at::Tensor result = at::empty_like(from);
  const auto* value = from.const_data_ptr<float>();
  auto* to = result.mutable_data_ptr<float>();
  const int64_t count = from.size(1) * from.size(2);
  const auto sectors = static_cast<float>(6 * (turn - std::floor(turn)));
  for (int64_t i = 0; i < count; ++i) {
    const auto colour = turned(value[i], value[count + i], value[2 * count + i], sectors);
    for (int64_t channel = 0; channel < 3; ++channel) {
      to[channel * count + i] = colour[static_cast<size_t>(channel)];
    }
  }
  return result;
}

std::function<at::Tensor(const at::Tensor&)> draw_jitter(const JitterRanges& ranges,
                                                         Random& random) {
  const double brightness = ranges.brightness.draw(random);
  const double contrast = ranges.contrast.draw(random);
  const double saturation = ranges.saturation.draw(random);
  const double hue = ranges.hue.draw(random);
  std::array<int, 4> order = {0, 1, 2, 3};
  for (int64_t i = 3; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1))]);
  }
  return [=](const at::Tensor& given) {
    at::Tensor image = given;
    const bool is_coloured = image.size(0) == 3;
    for (const int change : order) {
      if (change == 0 && brightness != 1) image = with_brightness(image, brightness);
      if (change == 1 && contrast != 1) image = with_contrast(image, contrast);
      if (change == 2 && saturation != 1 && is_coloured) image = with_saturation(image, saturation);
      if (change == 3 && hue != 0 && is_coloured) image = with_hue(image, hue);
    }
    return image;
  };
}

at::Tensor with_jitter(const at::Tensor& image, double strength, Random& random) {
  const NumberRange factors{.low = 1 - strength, .high = 1 + strength};
  return draw_jitter({.brightness = factors,
                      .contrast = factors,
                      .saturation = factors,
                      .hue = {.low = -strength, .high = strength}},
                     random)(image);
}

at::Tensor with_gamma(const at::Tensor& image, double gamma) {
  return at::pow(image.clamp(0, 1), gamma);
}

namespace {

/// [1, H, W]
at::Tensor lightness_of(const at::Tensor& image) {
  const at::Tensor linear =
      at::where(image <= 0.04045, image / 12.92, at::pow((image + 0.055) / 1.055, 2.4));
  const at::Tensor weights = at::tensor({0.212671, 0.715160, 0.072169}).to(at::kFloat);
  const at::Tensor luminance = (linear * weights.reshape({3, 1, 1})).sum(0, /*keepdim=*/true);
  return at::where(luminance > 0.008856, 1.16 * at::pow(luminance, 1.0 / 3) - 0.16,
                   9.033 * luminance);
}

/// [1, H, W]
at::Tensor principal_component_of(const at::Tensor& image) {
  const at::Tensor colours = image.flatten(1).to(at::kDouble);  // [3, H * W]
  const at::Tensor centred = colours - colours.mean(1, /*keepdim=*/true);
  at::Tensor direction = std::get<1>(at::linalg_eigh(centred.mm(centred.t()))).select(1, 2);
  if (direction[direction.abs().argmax()].item<double>() < 0) direction = -direction;
  const at::Tensor values = direction.unsqueeze(0).mm(centred);
  constexpr double kLeastRange = 1e-4 / 255;  // albumentations adds it, so that one colour is black
  const at::Tensor least = values.min();
  return ((values - least) / (values.max() - least + kLeastRange))
      .to(at::kFloat)
      .reshape({1, image.size(1), image.size(2)});
}

}  // namespace

at::Tensor in_grey(const at::Tensor& image, GreyMethod method) {
  const auto of_channels = [&] {
    switch (method) {
      case GreyMethod::kAverage:
        return image.mean(0, /*keepdim=*/true);
      case GreyMethod::kDesaturation:
        return (at::amax(image, 0, /*keepdim=*/true) + at::amin(image, 0, /*keepdim=*/true)) / 2;
      case GreyMethod::kMax:
        return at::amax(image, 0, /*keepdim=*/true);
      case GreyMethod::kFromLab:
        return lightness_of(image);
      case GreyMethod::kPca:
        return principal_component_of(image);
      default:
        return grey_of(image);
    }
  };
  return of_channels().expand_as(image).contiguous();
}

at::Tensor with_noise(const at::Tensor& image, double deviation, Random& random) {
  const at::Generator generator = at::detail::createCPUGenerator(random());
  return at::randn(image.sizes(), generator, at::kFloat).mul_(deviation).add_(image).clamp_(0, 1);
}

at::Tensor with_posterization(const at::Tensor& image, int bits) {
  const int levels = 1 << bits;
  return (image * levels).floor_().clamp_(0, levels - 1).mul_(1.0 / levels);
}

at::Tensor with_solarization(const at::Tensor& image, double threshold) {
  return at::where(image >= threshold, 1 - image, image);
}

at::Tensor with_autocontrast(const at::Tensor& image) {
  const at::Tensor least = at::amin(image, {1, 2}, /*keepdim=*/true);
  const at::Tensor range = at::amax(image, {1, 2}, /*keepdim=*/true) - least;
  return at::where(range > 0, ((image - least) / range).clamp(0, 1), image);
}

at::Tensor with_equalization(const at::Tensor& image) {
  constexpr int64_t kLevels = 256;
  const at::Tensor bytes = (image * 255).round_().to(at::kLong);
  std::vector<at::Tensor> channels;
  for (const at::Tensor& channel : bytes.unbind(0)) {
    const at::Tensor counts = at::bincount(channel.flatten(), {}, kLevels);
    const at::Tensor sums = counts.cumsum(0);
    const int64_t last = counts[channel.max()].item<int64_t>();
    const int64_t step = (channel.numel() - last) / (kLevels - 1);
    if (step == 0) {
      channels.push_back(channel);
      continue;
    }
    // The level of a value follows from how many values are darker.
    const at::Tensor levels = (sums - counts + step / 2).div(step, "floor").clamp_(0, kLevels - 1);
    channels.push_back(levels.index({channel}));
  }
  return at::stack(channels).to(at::kFloat).div_(255);
}

at::Tensor with_sharpness(const at::Tensor& image, double factor) {
  if (image.size(1) < 3 || image.size(2) < 3) return image;
  at::Tensor kernel = at::ones({image.size(0), 1, 3, 3}, at::kFloat);
  kernel.select(2, 1).select(2, 1).fill_(5);
  const at::Tensor smooth = convolved(image.unsqueeze(0), kernel.div_(13)).squeeze(0);
  at::Tensor result = image.clone();
  at::Tensor inside = result.narrow(1, 1, image.size(1) - 2).narrow(2, 1, image.size(2) - 2);
  inside.copy_((inside * factor).add_(smooth, 1 - factor));
  return result.clamp_(0, 1);
}

at::Tensor with_blur(const at::Tensor& image, int64_t size, double deviation) {
  const int64_t half = size / 2;
  at::Tensor weights = at::arange(-half, half + 1).to(at::kFloat).div_(deviation);
  weights = weights.square_().mul_(-0.5).exp_();
  weights /= weights.sum();
  const int64_t channels = image.size(0);
  const at::Tensor wide = at::reflection_pad2d(image.unsqueeze(0), {half, half, half, half});
  const at::Tensor across = weights.reshape({1, 1, 1, size}).expand({channels, 1, 1, size});
  const at::Tensor down = weights.reshape({1, 1, size, 1}).expand({channels, 1, size, 1});
  return convolved(convolved(wide, across), down).squeeze(0);
}

at::Tensor with_motion(const at::Tensor& image, const at::Tensor& kernel) {
  const int64_t size = kernel.size(0);
  const int64_t half = size / 2;
  const at::Tensor wide = at::replication_pad2d(image, {half, half, half, half});
  at::Tensor result = at::zeros_like(image);
  const auto weights = kernel.accessor<float, 2>();
  for (int64_t y = 0; y < size; ++y) {  // most weights are 0: faster than a convolution
    for (int64_t x = 0; x < size; ++x) {
      if (weights[y][x] == 0) continue;
      result.add_(wide.narrow(1, y, image.size(1)).narrow(2, x, image.size(2)), weights[y][x]);
    }
  }
  return result;
}

at::Tensor motion_kernel(int64_t size, Random& random) {
  at::Tensor kernel = at::zeros({size, size}, at::kFloat);
  const auto half = static_cast<double>(size / 2);
  const double angle = kCircle * random.uniform();
  // From -1, all after the middle, to 1, all before the middle.
  const double direction = 2 * random.uniform() - 1;
  const double first = -half * (1 - std::max(0.0, direction));
  const double last = half * (1 + std::min(0.0, direction));
  const double shift_x = half * (random.uniform() - 0.5);
  const double shift_y = half * (random.uniform() - 0.5);
  const auto pixel = [&](double place) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::round(half + place)), 0, size - 1);
  };
  for (int64_t i = 0; i < size; ++i) {
    const double along =
        first + (last - first) * static_cast<double>(i) / static_cast<double>(size - 1);
    kernel[pixel(shift_y + along * std::sin(angle))][pixel(shift_x + along * std::cos(angle))] = 1;
  }
  return kernel / kernel.sum();
}

namespace {

/// [H, W, C]
at::Tensor bytes_of(const at::Tensor& image) {
  return (image * 255).round_().to(at::kByte).permute({1, 2, 0}).contiguous();
}

}  // namespace

at::Tensor through_jpeg(const at::Tensor& image, int quality) {
  const std::string file = encode_jpeg(bytes_of(image), quality);
  return decode_image(file, "a JPEG of an augmentation", image.size(0)).add_(1).div_(2);
}

at::Tensor through_webp(const at::Tensor& image, int quality) {
  const at::Tensor colours = bytes_of(image.expand({3, image.size(1), image.size(2)}));
  const at::Tensor changed =
      through_webp_bytes(colours, quality).permute({2, 0, 1}).to(at::kFloat).div_(255);
  return image.size(0) == 3 ? changed.contiguous() : grey_of(changed);
}

}  // namespace stepop
