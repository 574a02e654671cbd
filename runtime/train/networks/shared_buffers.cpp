#include "runtime/train/networks/shared_buffers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <torch/nn/module.h>

#include <set>
#include <string>

#include "runtime/train/networks/networks.h"

namespace stepop {
namespace {

/// All tensors of one type on one device, to be sent at once.
std::vector<at::Tensor> together(const std::vector<at::Tensor>& tensors, double factor) {
  std::vector<at::Tensor> flat;
  for (const auto& tensor : tensors) {
    flat.push_back(tensor.detach().reshape({-1}).to(tensors[0].device(), at::kDouble) * factor);
  }
  return flat;
}

}  // namespace

SharedBuffers::SharedBuffers(World& world, const Networks& networks) : world_(world) {
  if (world.is_alone()) return;
  std::set<const void*> known;
  for (const auto& name : networks.names()) {
    for (const auto& item : networks.get(name)->named_buffers()) {
      const at::Tensor& buffer = item.value();
      if (!buffer.defined() || !known.insert(buffer.unsafeGetTensorImpl()).second) continue;
      const std::string last = item.key().substr(item.key().rfind('.') + 1);
      if (last == "num_batches_tracked") continue;  // equal in all
      if (buffer.is_floating_point() && (last == "running_mean" || last == "running_var")) {
        statistics_.push_back(buffer);
      } else {
        others_.push_back({buffer, static_cast<int64_t>(buffer._version())});
      }
    }
  }
}

void SharedBuffers::share(double share) {
  if (world_.is_alone()) return;
  const at::NoGradGuard no_grad;
  if (!statistics_.empty()) {
    const at::Tensor all = at::cat(together(statistics_, share));
    world_.sum(all);
    int64_t offset = 0;
    for (at::Tensor& statistic : statistics_) {
      statistic.copy_(all.narrow(0, offset, statistic.numel()).view(statistic.sizes()));
      offset += statistic.numel();
    }
  }
  for (auto& [buffer, version] : others_) {
    if (static_cast<int64_t>(buffer._version()) == version) continue;
    const at::Tensor copy = buffer.detach().cpu().contiguous();
    world_.broadcast(copy);
    buffer.copy_(copy);
    version = static_cast<int64_t>(buffer._version());
  }
}

void SharedBuffers::skip_writes() {
  for (auto& [buffer, version] : others_) version = static_cast<int64_t>(buffer._version());
}

}  // namespace stepop
