#include "iterators/pix2pix/image_pool.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include "runtime/train/iterator/context.h"

namespace stepop::pix2pix {

ImagePool::ImagePool(const Context& context, int64_t capacity) : capacity_(capacity) {
  if (capacity_ == 0) return;
  context.track("image_pool/count", count_);
  context.track("image_pool/images", images_);
}

at::Tensor ImagePool::exchange(const at::Tensor& images) {
  if (capacity_ == 0) return images.detach();
  if (!images_.defined()) {
    std::vector<int64_t> shape = images.sizes().vec();
    shape[0] = capacity_;
    images_ = at::zeros(shape, images.options());
  }
  at::Tensor exchanged = images.detach().clone();
  for (int64_t i = 0; i < images.size(0); ++i) {
    if (count_ < capacity_) {
      images_[count_++].copy_(exchanged[i]);
      continue;
    }
    const auto place = at::randint(2 * capacity_, {}, at::kLong).item<int64_t>();
    if (place >= capacity_) continue;
    const at::Tensor earlier = images_[place].clone();
    images_[place].copy_(exchanged[i]);
    exchanged[i].copy_(earlier);
  }
  return exchanged;
}

}  // namespace stepop::pix2pix
