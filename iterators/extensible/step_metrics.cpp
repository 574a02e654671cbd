#include "iterators/extensible/step_metrics.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <utility>

namespace stepop::extensible {

void StepMetrics::add(const std::string& name, const Scalar& value, double share) {
  const at::Tensor* tensor = value.tensor();
  const Scalar* before = scalars_.find(name);
  if (value.weighted() != nullptr) {
    scalars_.set(name, before == nullptr ? value : mean_of(name, *before, 1, value, 1));
  } else if (tensor == nullptr || tensor->is_cpu()) {
    const bool is_one_number = tensor != nullptr && tensor->numel() == 1;
    const double number = is_one_number ? tensor->item<double>() : value.read(name);
    scalars_.set(name, share * number + (before == nullptr ? 0 : before->read(name)));
  } else if (share == 1) {
    scalars_.set(name, value);
  } else {
    const at::Tensor weighted = tensor->mul(share);
    scalars_.set(name, before == nullptr ? weighted : before->tensor()->add(weighted));
  }
}

void StepMetrics::add_all(const std::string& prefix, Logs logs, double share) {
  for (const auto& [name, number] : logs.scalars) {
    add(fmt::format("{}_{}", prefix, name), number, share);
  }
  const auto move = [&](auto& from, auto& to) {
    for (auto& [name, value] : from) {
      to.set(fmt::format("{}_{}", prefix, name), std::move(value));
    }
  };
  move(logs.images, others_.images);
  move(logs.videos, others_.videos);
  move(logs.audio, others_.audio);
  move(logs.texts, others_.texts);
  move(logs.histograms, others_.histograms);
  move(logs.curves, others_.curves);
}

}  // namespace stepop::extensible
