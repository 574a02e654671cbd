#pragma once

#include <ATen/record_function.h>

#include <cstdint>

namespace stepop {

/// The convolutions that a network computes on the CPU, and whether they are so small that LibTorch
/// computes them faster without oneDNN, whose calls cost a few hundred microseconds each, forward
/// and backward together, whatever their size.
struct ConvolutionCount {
  int64_t convolutions = 0;
  double multiplications = 0;  ///< Of all of them, in a forward pass.
  int64_t most_examples = 0;   ///< In one call.
  /// Something that oneDNN computes several times faster at any size: an LSTM, grouped or dilated
  /// convolutions, half precision.
  bool needs_onednn = false;

  /// Multiplications of a convolution on average.
  double mean() const {
    return convolutions > 0 ? multiplications / static_cast<double>(convolutions) : 0;
  }
  /// A rule, and no measurement, so that it decides the same on each machine.
  bool is_small(int threads) const;
  /// Whether LibTorch computes without oneDNN in a way that loses at any size.
  bool is_slow_without_onednn() const;
};

/// Adds the convolutions that this thread computes during its lifetime to `count`.
class ConvolutionCounter {
 public:
  explicit ConvolutionCounter(ConvolutionCount& count);
  ~ConvolutionCounter();
  ConvolutionCounter(const ConvolutionCounter&) = delete;
  ConvolutionCounter& operator=(const ConvolutionCounter&) = delete;

 private:
  ConvolutionCount* before_;
  at::CallbackHandle callback_;
};

}  // namespace stepop
