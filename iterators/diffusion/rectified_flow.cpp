#include "iterators/diffusion/rectified_flow.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <vector>

namespace stepop::diffusion {

at::Tensor point_on_line(const at::Tensor& x, const at::Tensor& noise, const at::Tensor& t) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  const at::Tensor times = t.to(x.scalar_type()).view(shape);
  return (1 - times) * x + times * noise;
}

at::Tensor rectified_flow_loss(const Velocity& velocity, const at::Tensor& x,
                               const at::Tensor& noise, const at::Tensor& t) {
  const at::Tensor predicted = velocity(point_on_line(x, noise, t), t);
  return (predicted - (noise - x)).square().flatten(1).mean(1);
}

at::Tensor random_times(int64_t count, FlowTimes times, const at::Device& device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  return times == FlowTimes::kUniform ? at::rand({count}, options)
                                      : at::randn({count}, options).sigmoid();
}

at::Tensor sample_flow(const Velocity& velocity, const at::Tensor& noise, int64_t steps) {
  const at::NoGradGuard no_grad;
  at::Tensor x = noise;
  for (int64_t i = steps; i > 0; --i) {
    const double time = static_cast<double>(i) / static_cast<double>(steps);
    const at::Tensor t = at::full({x.size(0)}, time, x.options());
    x = x - velocity(x, t) / static_cast<double>(steps);
  }
  return x;
}

}  // namespace stepop::diffusion
