#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace stepop {

/// A .wav file of 16 bits.
struct WavFile {
  std::string bytes;
  int64_t channels = 0;
  int64_t samples = 0;  ///< Of each channel.
  int64_t rate = 0;     ///< Samples a second.
};

/// Rounds floats [channels, samples] in [-1, 1] to 16 bits; cuts what lies beyond, and writes 0 for
/// NaN. The file has at most 2 GB.
WavFile encode_wav(const at::Tensor& sound, int64_t rate);

}  // namespace stepop
