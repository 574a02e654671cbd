#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace stepop::audio {

/// Audio at another sampling rate, by a sinc of six zero crossings a side in a Hann window, that
/// passes 99% of the frequencies which both rates have: torchaudio.functional.resample and its
/// defaults.
class Resampler {
 public:
  /// Rates in samples a second, 1 or more. Throws Error for two rates so far apart that the filters
  /// would not fit into memory.
  Resampler(int64_t from, int64_t to, const c10::Device& device);

  /// [..., T] to [..., ceil(T to / from)]. Throws Error for whole numbers.
  at::Tensor operator()(const at::Tensor& audio) const;

 private:
  int64_t from_;  ///< Without the common factor of both.
  int64_t to_;
  int64_t width_ = 0;   ///< Samples that a filter reaches to each side.
  at::Tensor filters_;  ///< [to, 1, from + 2 width], float32
};

}  // namespace stepop::audio
