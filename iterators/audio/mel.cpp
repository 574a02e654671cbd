#include "iterators/audio/mel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/hann_window.h>
#include <ATen/ops/log.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/square.h>
#include <ATen/ops/stft.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::audio {
namespace {

// Slaney's scale: 200 / 3 Hz a mel up to 1,000 Hz; above, 27 mels for a factor of 6.4.
constexpr double kLinear = 200.0 / 3;
constexpr double kBreakHertz = 1000;
constexpr double kBreakMel = kBreakHertz / kLinear;
const double kLogStep = std::log(6.4) / 27;

constexpr double kFloor = 1e-5;

}  // namespace

double hertz_to_mel(double hertz, MelScale scale) {
  if (scale == MelScale::kHtk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < kBreakHertz ? hertz / kLinear
                             : kBreakMel + std::log(hertz / kBreakHertz) / kLogStep;
}

double mel_to_hertz(double mel, MelScale scale) {
  if (scale == MelScale::kHtk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < kBreakMel ? mel * kLinear : kBreakHertz * std::exp((mel - kBreakMel) * kLogStep);
}

at::Tensor mel_filters(const MelBank& bank) {
  const double first = hertz_to_mel(bank.lowest, bank.scale);
  const double last = hertz_to_mel(bank.highest, bank.scale);
  const double step = (last - first) / static_cast<double>(bank.mels + 1);
  std::vector<double> corners;  // triangle i spans corner i to corner i + 2
  for (int64_t i = 0; i < bank.mels + 2; ++i) {
    corners.push_back(mel_to_hertz(first + step * static_cast<double>(i), bank.scale));
  }
  at::Tensor filters = at::zeros({bank.mels, bank.bins}, at::kFloat);
  auto* weight = filters.mutable_data_ptr<float>();
  const double bin_width =
      static_cast<double>(bank.sampling_rate) / 2 / static_cast<double>(bank.bins - 1);
  for (size_t mel = 0; mel + 2 < corners.size(); ++mel) {
    const double left = corners[mel];
    const double top = corners[mel + 1];
    const double right = corners[mel + 2];
    for (int64_t bin = 0; bin < bank.bins; ++bin, ++weight) {
      const double hertz = bin_width * static_cast<double>(bin);
      const double height =
          std::min((hertz - left) / (top - left), (right - hertz) / (right - top));
      *weight = static_cast<float>(std::max(height, 0.0) * 2 / (right - left));
    }
  }
  return filters;
}

MelSpectrogram::MelSpectrogram(const Options& options, const c10::Device& device)
    : options_(options),
      window_(at::hann_window(options.window, at::TensorOptions(at::kFloat).device(device))),
      filters_(mel_filters({options.sampling_rate, options.fft / 2 + 1, options.mels,
                            options.lowest, options.highest, options.scale})
                   .to(device)) {}

at::Tensor MelSpectrogram::operator()(const at::Tensor& audio) const {
  if (audio.dim() != 2 || audio.size(1) <= options_.fft / 2) {
    throw Error(fmt::format("expected audio [B, T] of more than {} samples, found {}",
                            options_.fft / 2, describe_tensor(audio)));
  }
  at::Tensor spectrum = at::stft(audio.to(at::kFloat), options_.fft, options_.hop, options_.window,
                                 window_, /*center=*/true, "reflect", /*normalized=*/false,
                                 /*onesided=*/true, /*return_complex=*/true);
  if (options_.divides_window) spectrum = spectrum / window_.square().sum().sqrt();
  const at::Tensor magnitudes = at::abs(spectrum);  // [B, bins, frames]
  const at::Tensor mels =
      at::matmul(filters_, options_.is_power ? at::square(magnitudes) : magnitudes);
  return at::log(at::clamp_min(mels, kFloor));
}

at::Tensor normalized_mel(const at::Tensor& mel, double highest) {
  return (mel - kLowestMel) / (highest - kLowestMel) * 2 - 1;
}

}  // namespace stepop::audio
