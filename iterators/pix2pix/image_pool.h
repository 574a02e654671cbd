#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stepop {
struct Context;
}

namespace stepop::pix2pix {

/// Made images of earlier steps, so that a discriminator does not forget them (Shrivastava et al.,
/// 2017; as CycleGAN has it). It is a part of checkpoints. With the capacity 0 it does nothing.
class ImagePool {
 public:
  /// `context` outlives it.
  ImagePool(const Context& context, int64_t capacity);
  ImagePool(const ImagePool&) = delete;
  ImagePool& operator=(const ImagePool&) = delete;

  /// For each of `images` [B, ...] itself while there is room, which it then takes; later itself or
  /// an earlier one, whose place it takes, with the same chance. Without a graph. Draws from
  /// LibTorch's generator of the CPU.
  at::Tensor exchange(const at::Tensor& images);

 private:
  int64_t capacity_;
  int64_t count_ = 0;
  at::Tensor images_;  ///< [capacity, ...], of which the first `count_` are there.
};

}  // namespace stepop::pix2pix
