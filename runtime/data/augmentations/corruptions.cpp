#include "runtime/data/augmentations/corruptions.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/pictures/resize.h"
#include "runtime/data/augmentations/colour.h"

namespace stepop {
namespace {

/// In steps of 1/64 to 1/8 of the range.
at::Tensor quantized(const at::Tensor& image, CorruptionDraw& draw) {
  const int step = 4 << static_cast<int>(draw.strength * 10 / 3);
  return (image * 255).div_(step).floor_().mul_(step).div_(255);
}

at::Tensor jittered(const at::Tensor& image, CorruptionDraw& draw) {
  return with_jitter(image, draw.strength * 0.2, draw.random);
}

/// As OpenCV's GaussianBlur does, which finds the size of the window from the deviation. A window
/// is no larger than a small image allows.
at::Tensor blurred(const at::Tensor& image, CorruptionDraw& draw) {
  const double deviation = draw.blur_scale * draw.strength * 1.5;
  const int64_t most = 2 * std::min(image.size(1), image.size(2)) - 1;
  const int64_t size = std::min<int64_t>(std::lrint(deviation * 8 + 1) | 1, most);
  return size == 1 ? image : with_blur(image, size, deviation);
}

at::Tensor motion_blurred(const at::Tensor& image, CorruptionDraw& draw) {
  const auto length = static_cast<int64_t>(draw.blur_scale * draw.strength * 3 + 1);
  return length == 1 ? image : with_motion(image, motion_kernel(length | 1, draw.random));
}

/// Made smaller by one of four interpolations: nearest, linear, cubic and area; nearest is drawn
/// twice as often.
at::Tensor reduced_by(int64_t scale, const at::Tensor& image, CorruptionDraw& draw) {
  if (scale == 1) return image;
  const std::array<int64_t, 2> size = {image.size(1) / scale, image.size(2) / scale};
  if (size[0] == 0 || size[1] == 0) {
    throw Error(
        fmt::format("lq_resampling: an image of {} x {} pixels cannot be made {} times "
                    "smaller",
                    image.size(1), image.size(2), scale));
  }
  draw.reduction *= scale;
  const at::Tensor one = image.unsqueeze(0);
  switch (draw.random.below(5) % 4) {
    case 0:
      return at::upsample_nearest2d(one, size).squeeze(0);
    case 1:
      return at::upsample_bilinear2d(one, size, /*align_corners=*/false).squeeze(0);
    case 2:
      return at::upsample_bicubic2d(one, size, /*align_corners=*/false).squeeze(0);
    default:
      return resize_by_area(image, size);
  }
}

at::Tensor resampled(const at::Tensor& image, CorruptionDraw& draw) {
  return reduced_by(draw.strength < 0.3 ? 1 : (draw.strength < 0.7 ? 2 : 4), image, draw);
}
at::Tensor resampled_4x(const at::Tensor& image, CorruptionDraw& draw) {
  return reduced_by(4, image, draw);
}

/// Even noise from 0 to `most` of 255.
at::Tensor noisy(const at::Tensor& image, double most, Random& random) {
  const at::Generator generator = at::detail::createCPUGenerator(random());
  return image + at::rand(image.sizes(), generator, at::kFloat).mul_(most / 255);
}
at::Tensor with_drawn_noise(const at::Tensor& image, CorruptionDraw& draw) {
  return noisy(image, draw.strength * 6, draw.random);
}
at::Tensor with_noise_of_5(const at::Tensor& image, CorruptionDraw& draw) {
  return noisy(image, 5, draw.random);
}

/// Through a JPEG whose quality falls from `low` + `range` to `low` with the strength.
template <int kLow, int kRange>
at::Tensor compressed(const at::Tensor& image, CorruptionDraw& draw) {
  const at::Tensor whole = (image.clamp(0, 1) * 255).floor_().div_(255);
  return through_jpeg(whole, static_cast<int>((1 - draw.strength) * kRange) + kLow);
}

at::Tensor brightened(const at::Tensor& image, CorruptionDraw& draw) {
  return (image + draw.strength * 0.3).clamp_(0, 1);
}
at::Tensor greyed(const at::Tensor& image, CorruptionDraw&) {
  return in_grey(image, GreyMethod::kAverage);
}
at::Tensor unchanged(const at::Tensor& image, CorruptionDraw&) { return image; }

struct NamedCorruption {
  std::string_view name;
  at::Tensor (*change)(const at::Tensor& image, CorruptionDraw& draw);
};
constexpr std::array kCorruptions = {
    NamedCorruption{"none", unchanged},
    NamedCorruption{"color_quantization", quantized},
    NamedCorruption{"color_jitter", jittered},
    NamedCorruption{"gaussian_blur", blurred},
    NamedCorruption{"motion_blur", motion_blurred},
    NamedCorruption{"lq_resampling", resampled},
    NamedCorruption{"lq_resampling4x", resampled_4x},
    NamedCorruption{"noise", with_drawn_noise},
    NamedCorruption{"noise-5", with_noise_of_5},
    NamedCorruption{"jpeg", compressed<10, 20>},
    NamedCorruption{"jpeg-low", compressed<15, 10>},
    NamedCorruption{"jpeg-medium", compressed<23, 25>},
    NamedCorruption{"jpeg-broad", compressed<15, 60>},
    NamedCorruption{"jpeg-normal", compressed<47, 35>},
    NamedCorruption{"saturation", brightened},
    NamedCorruption{"greyscale", greyed},
};
/// Names that DL-Art-School accepts without any effect.
constexpr std::array<std::string_view, 4> kWithoutEffect = {"block_noise", "color_shift",
                                                            "interlacing", "chromatic_aberration"};

const NamedCorruption* find_corruption(std::string_view name) {
  const auto* found =
      std::ranges::find_if(kCorruptions, [&](const auto& each) { return each.name == name; });
  return found == kCorruptions.end() ? nullptr : found;
}

void check_names(const Config& params, const char* key, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (find_corruption(names[i]) != nullptr) continue;
    const std::string place = fmt::format("{}/{}", key, i);
    if (std::ranges::find(kWithoutEffect, names[i]) != kWithoutEffect.end()) {
      throw params.error(place, fmt::format("{} changes nothing in DL-Art-School either: write "
                                            "none, or remove it",
                                            names[i]));
    }
    std::vector<std::string> known;
    for (const auto& each : kCorruptions) known.emplace_back(each.name);
    throw params.error(place, fmt::format("no corruption \"{}\"; there are: {}", names[i],
                                          fmt::join(sorted_by_distance(names[i], known), ", ")));
  }
}

bool is_noise(const std::string& name) { return name == "noise" || name == "noise-5"; }

}  // namespace

at::Tensor corrupted(const at::Tensor& image, const std::string& name, CorruptionDraw& draw) {
  return find_corruption(name)->change(image, draw);
}

at::Tensor enlarged(const at::Tensor& image, int64_t factor) {
  if (factor == 1) return image;
  return at::upsample_bilinear2d(image.unsqueeze(0),
                                 {image.size(1) * factor, image.size(2) * factor},
                                 /*align_corners=*/false)
      .squeeze(0);
}

void Corruptions::Params::declare(Parameters& p) {
  p.add("fixed_corruptions", fixed_corruptions,
        "of each image, in this order: [jpeg-broad, gaussian_blur]");
  p.add("random_corruptions", random_corruptions,
        "some of them for each image, before the fixed ones");
  p.add("num_corrupts_per_image", num_corrupts_per_image, "how many of the random ones",
        at_least(0).at_most(1000));
  p.add("corruption_blur_scale", corruption_blur_scale, "how wide blurs are",
        at_least(0).at_most(100));
  p.add("cosine_bias", cosine_bias, "strengths near 0 are drawn more often; false: all alike");
}

Corruptions::Corruptions(const Config& config) : p_(read_parameters<Params>(config)) {
  check_names(config, "fixed_corruptions", p_.fixed_corruptions);
  check_names(config, "random_corruptions", p_.random_corruptions);
  if (p_.num_corrupts_per_image > 0 && p_.random_corruptions.empty()) {
    throw config.error("num_corrupts_per_image",
                       "there are no random_corruptions to choose from: [jpeg, none]");
  }
}

double Corruptions::draw_strength(Random& random) const {
  const double even = random.uniform();
  return p_.cosine_bias ? 1 - std::cos(even * std::numbers::pi / 2) : even;
}

at::Tensor Corruptions::apply(const at::Tensor& image, Random& random,
                              std::vector<float>& strengths) const {
  std::vector<std::string> names;
  const auto& fixed = p_.fixed_corruptions;
  const auto& to_draw = p_.random_corruptions;
  for (int64_t i = 0; i < p_.num_corrupts_per_image; ++i) {
    names.push_back(to_draw[static_cast<size_t>(random.below(std::ssize(to_draw)))]);
  }
  names.insert(names.end(), fixed.begin(), fixed.end());
  // As in DL-Art-School, a JPEG would turn noise into blocks.
  const bool has_noise = std::ranges::any_of(names, is_noise);
  at::Tensor changed = image;
  int64_t reduction = 1;
  for (size_t i = 0; i < names.size(); ++i) {
    CorruptionDraw draw{.strength = draw_strength(random),
                        .blur_scale = p_.corruption_blur_scale,
                        .random = random,
                        .reduction = reduction};
    if (std::ssize(names) - std::ssize(fixed) <= static_cast<int64_t>(i)) {
      strengths.push_back(static_cast<float>(draw.strength));
    }
    if (has_noise && names[i].starts_with("jpeg")) continue;
    changed = corrupted(changed, names[i], draw);
    reduction = draw.reduction;
  }
  return enlarged(changed, reduction);
}

}  // namespace stepop
