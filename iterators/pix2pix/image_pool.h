#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace stepop {
struct Context;
}

namespace stepop::pix2pix {

/// Generated images of earlier steps, so that a discriminator does not forget them (Shrivastava et
/// al., 2017; as in CycleGAN). Checkpoints include the pool. With capacity 0 the pool does nothing.
class ImagePool {
 public:
  /// `context` must outlive the pool.
  ImagePool(const Context& context, int64_t capacity);
  ImagePool(const ImagePool&) = delete;
  ImagePool& operator=(const ImagePool&) = delete;

  /// While the pool has room, stores and returns each of `images` [B, ...]. Later, returns with
  /// equal chance either the image itself or an earlier image, which it replaces. Without a graph.
  /// Random numbers come from LibTorch's CPU generator.
  at::Tensor exchange(const at::Tensor& images);

 private:
  int64_t capacity_;
  int64_t count_ = 0;
  at::Tensor images_;  ///< [capacity, ...]; the first `count_` are filled.
};

}  // namespace stepop::pix2pix
