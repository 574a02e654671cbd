#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace stepop::audio {

/// Converts audio to another sampling rate with a sinc filter of six zero crossings a side in a
/// Hann window, which passes 99% of the frequencies that both rates have, like
/// torchaudio.functional.resample with its defaults.
class Resampler {
 public:
  /// Rates are in samples a second, 1 or more. Throws Error for rates so far apart that the filters
  /// would not fit into memory.
  Resampler(int64_t from, int64_t to, const c10::Device& device);

  /// [..., T] to [..., ceil(T to / from)]. Throws Error for integer audio.
  at::Tensor operator()(const at::Tensor& audio) const;

 private:
  int64_t from_;  ///< Divided, like `to_`, by their common factor.
  int64_t to_;
  int64_t width_ = 0;   ///< Samples that a filter covers on each side.
  at::Tensor filters_;  ///< [to, 1, from + 2 width], float32
};

}  // namespace stepop::audio
