#include "iterators/diffusion/guidance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>

#include <utility>

namespace stepop::diffusion {

std::function<at::Tensor(const at::Tensor& x, const at::Tensor& t)> with_guidance(
    ConditionalModel model, at::Tensor classes, int64_t null_class, double scale) {
  if (scale == 1) {
    return [model = std::move(model), classes = std::move(classes)](
               const at::Tensor& x, const at::Tensor& t) { return model(x, t, classes); };
  }
  const at::Tensor both = at::cat({classes, at::full_like(classes, null_class)});
  return [model = std::move(model), both, scale](const at::Tensor& x, const at::Tensor& t) {
    const auto halves = model(at::cat({x, x}), at::cat({t, t}), both).chunk(2);
    const int64_t channels = x.size(1);
    const at::Tensor with = halves[0].narrow(1, 0, channels);
    const at::Tensor without = halves[1].narrow(1, 0, channels);
    const at::Tensor guided = without + scale * (with - without);
    const int64_t further = halves[0].size(1) - channels;
    if (further == 0) return guided;
    return at::cat({guided, halves[0].narrow(1, channels, further)}, 1);
  };
}

at::Tensor drop_classes(const at::Tensor& classes, int64_t null_class, double probability) {
  if (probability == 0) return classes;
  const at::Tensor is_dropped =
      at::rand(classes.sizes(), at::TensorOptions(at::kFloat).device(classes.device())) <
      probability;
  return classes.masked_fill(is_dropped, null_class);
}

}  // namespace stepop::diffusion
