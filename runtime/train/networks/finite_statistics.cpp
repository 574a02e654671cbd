#include "runtime/train/networks/finite_statistics.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>
#include <torch/nn/module.h>

#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/non_finite.h"

namespace stepop {

FiniteStatistics::FiniteStatistics(const Networks& networks) {
  for (const auto& name : networks.names()) {
    for (const auto& buffer : networks.get(name)->named_buffers()) {
      const bool is_statistic =
          buffer.key().ends_with("running_mean") || buffer.key().ends_with("running_var");
      if (!is_statistic || !buffer.value().defined()) continue;
      statistics_.push_back(buffer.value());
      kept_.push_back(at::empty_like(buffer.value()));
    }
  }
}

void FiniteStatistics::keep() {
  if (statistics_.empty()) return;
  const at::NoGradGuard no_grad;
  at::_foreach_copy_(kept_, statistics_);
}

void FiniteStatistics::restore() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < statistics_.size(); ++i) {
    if (!is_finite(statistics_[i])) statistics_[i].copy_(kept_[i]);
  }
}

}  // namespace stepop
