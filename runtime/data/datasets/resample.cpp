#include "runtime/data/datasets/resample.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::audio {
namespace {

constexpr double kCrossings = 6;
constexpr double kRolloff = 0.99;
constexpr int64_t kMostNumbers = 50'000'000;  ///< The limit for all filters together: 200 MB.

/// The filter's value at `t` zero crossings from its middle.
double windowed_sinc(double t) {
  t = std::clamp(t, -kCrossings, kCrossings);
  const double window = std::pow(std::cos(t * std::numbers::pi / kCrossings / 2), 2);
  const double angle = t * std::numbers::pi;
  return window * (angle == 0 ? 1 : std::sin(angle) / angle);
}

}  // namespace

Resampler::Resampler(int64_t from, int64_t to, const c10::Device& device)
    : from_(from / std::gcd(from, to)), to_(to / std::gcd(from, to)) {
  if (from_ == to_) return;
  const double passed = static_cast<double>(std::min(from_, to_)) * kRolloff;
  width_ = static_cast<int64_t>(std::ceil(kCrossings * static_cast<double>(from_) / passed));
  const int64_t length = from_ + 2 * width_;
  if (length > kMostNumbers / to_) {
    throw Error(
        fmt::format("{} and {} have so small a common factor that this takes {} filters of "
                    "{} numbers; choose rates such as 22050 and 24000",
                    from, to, to_, length));
  }
  filters_ = at::empty({to_, 1, length}, at::kFloat);
  auto* number = filters_.mutable_data_ptr<float>();
  for (int64_t phase = 0; phase < to_; ++phase) {
    for (int64_t i = -width_; i < width_ + from_; ++i, ++number) {
      const double seconds = static_cast<double>(i) / static_cast<double>(from_) -
                             static_cast<double>(phase) / static_cast<double>(to_);
      *number =
          static_cast<float>(windowed_sinc(seconds * passed) * passed / static_cast<double>(from_));
    }
  }
  filters_ = filters_.to(device);
}

at::Tensor Resampler::operator()(const at::Tensor& audio) const {
  if (audio.dim() < 1 || !audio.is_floating_point()) {
    throw Error(fmt::format("expected audio as floating-point numbers, [..., T], found {}",
                            describe_tensor(audio)));
  }
  if (from_ == to_) return audio;
  const int64_t samples = audio.size(-1);
  std::vector<int64_t> shape = audio.sizes().vec();
  shape.back() = (samples * to_ + from_ - 1) / from_;
  const int64_t rows =
      std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
  const at::Tensor padded =
      at::constant_pad_nd(audio.reshape({rows, 1, samples}), {width_, width_ + from_});
  // [N, to, steps]: each step turns `from` samples into `to`.
  const at::Tensor made = at::conv1d(padded, filters_.to(audio.scalar_type()), {}, from_);
  return made.transpose(1, 2).flatten(1).narrow(1, 0, shape.back()).reshape(shape);
}

}  // namespace stepop::audio
