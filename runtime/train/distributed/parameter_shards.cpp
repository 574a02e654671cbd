#include "runtime/train/distributed/parameter_shards.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace stepop {
namespace {

/// The number of bytes of parameters in one message.
constexpr int64_t kBytesTogether = 25 << 20;

}  // namespace

std::vector<int> shard_owners(const std::vector<int64_t>& bytes, int count) {
  std::vector<size_t> by_size(bytes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, std::greater<>(), [&](size_t i) { return bytes[i]; });
  std::vector<int64_t> held(static_cast<size_t>(count));
  std::vector<int> owners(bytes.size());
  for (const size_t position : by_size) {
    const auto least = std::ranges::min_element(held);
    *least += bytes[position];
    owners[position] = static_cast<int>(least - held.begin());
  }
  return owners;
}

ParameterShards::ParameterShards(World& world, std::vector<at::Tensor> parameters)
    : world_(world), parameters_(std::move(parameters)) {
  std::vector<int64_t> bytes;
  for (const auto& each : parameters_) bytes.push_back(static_cast<int64_t>(each.nbytes()));
  owners_ = shard_owners(bytes, world.size());
}

void ParameterShards::share() {
  const at::NoGradGuard no_grad;
  for (int owner = 0; owner < world_.size(); ++owner) {
    std::vector<at::Tensor> together;
    int64_t bytes = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (owners_[i] != owner) continue;
      const at::Tensor& next = parameters_[i];
      const auto size = static_cast<int64_t>(next.nbytes());
      const bool fits = together.empty() ||
                        (bytes + size <= kBytesTogether && next.device() == together[0].device() &&
                         next.scalar_type() == together[0].scalar_type());
      if (!fits) {
        share(owner, std::exchange(together, {}));
        bytes = 0;
      }
      together.push_back(next);
      bytes += size;
    }
    if (!together.empty()) share(owner, together);
  }
}

void ParameterShards::share(int owner, const std::vector<at::Tensor>& parameters) {
  const bool is_own = owner == world_.rank();
  if (parameters.size() == 1 && parameters[0].is_contiguous()) {
    world_.broadcast(parameters[0].detach(), owner);
    if (!is_own) parameters[0].unsafeGetTensorImpl()->bump_version();
    return;
  }
  std::vector<at::Tensor> flat;
  int64_t size = 0;
  for (const at::Tensor& parameter : parameters) size += parameter.numel();
  if (is_own) {
    for (const at::Tensor& parameter : parameters) flat.push_back(parameter.reshape({-1}));
  }
  const at::Tensor values = is_own ? at::cat(flat) : at::empty({size}, parameters[0].options());
  world_.broadcast(values, owner);
  if (is_own) return;
  int64_t offset = 0;
  for (at::Tensor parameter : parameters) {
    parameter.copy_(values.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
    offset += parameter.numel();
  }
}

}  // namespace stepop
