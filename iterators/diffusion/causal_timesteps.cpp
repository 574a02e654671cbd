#include "iterators/diffusion/causal_timesteps.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

namespace stepop::diffusion {

CausalTimesteps causal_timesteps(const at::Tensor& t, int64_t length, int64_t timesteps,
                                 double slope, double jitter) {
  const auto number = static_cast<double>(timesteps);
  const double further = slope * static_cast<double>(length - 1);
  const at::Tensor first = (t * (number + further)).div(number, "floor") - further;
  const double gap = (number + further) / number;
  const at::Tensor moved = (first + jitter * gap).clamp(-further, number);
  const at::Tensor places = at::arange(length, t.options()) * slope;
  const at::Tensor all = (moved.unsqueeze(1) + places).clamp(-1, number).to(at::kLong);
  const at::Tensor is_open = all.ge(0).logical_and(all.lt(timesteps));
  return {all.clamp(0, timesteps - 1).unsqueeze(1), is_open.unsqueeze(1)};
}

}  // namespace stepop::diffusion
