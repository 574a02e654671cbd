#include "runtime/core/log/logs.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace stepop {

Scalar::Scalar(WeightedMean mean) : value_(mean.value()) {
  if (mean.has_weight()) weighted_ = std::make_shared<const WeightedMean>(std::move(mean));
}

double Scalar::read(const std::string& name) const {
  const at::Tensor* found = tensor();
  if (found == nullptr) return std::get<double>(value_);
  if (!found->defined()) throw Error(fmt::format("{} is an undefined tensor, not a scalar", name));
  if (found->numel() != 1) {
    throw Error(fmt::format("{} is not a scalar: its shape is [{}]; reduce it with mean() or sum()",
                            name, fmt::join(found->sizes(), ", ")));
  }
  return found->to(at::kCPU, at::kDouble).const_data_ptr<double>()[0];
}

namespace {

bool counts(const Scalar& scalar) {
  const WeightedMean* mean = scalar.weighted();
  if (mean == nullptr) return true;
  if (mean->known_weight()) return *mean->known_weight() != 0;
  return mean->weight().item<double>() != 0;
}

}  // namespace

Scalar mean_of(const std::string& name, const Scalar& a, double count_a, const Scalar& b,
               double count_b) {
  if (a.weighted() != nullptr && b.weighted() != nullptr) {
    return mean_of(*a.weighted(), *b.weighted());
  }
  if (count_a == 0) return b;
  if (count_b == 0) return a;
  const double share_a = count_a / (count_a + count_b);
  const double share_b = count_b / (count_a + count_b);
  if (a.tensor() == nullptr || b.tensor() == nullptr) {
    return a.read(name) * share_a + b.read(name) * share_b;
  }
  const auto number = [](const at::Tensor& tensor) {
    return tensor.detach().reshape({}).to(at::kDouble);
  };
  const at::Tensor first = number(*a.tensor());
  return first.mul(share_a).add(number(*b.tensor()).to(first.device()), share_b);
}

OrderedMap<double> read_scalars(const OrderedMap<Logs>& logs) {
  OrderedMap<double> numbers;
  std::vector<std::string> names;
  std::vector<at::Tensor> on_device;
  for (const auto& [op, result] : logs) {
    for (const auto& [key, scalar] : result.scalars) {
      const std::string name = op + "/" + key;
      if (!counts(scalar)) continue;
      const at::Tensor* tensor = scalar.tensor();
      const bool waits = tensor != nullptr && tensor->defined() && tensor->numel() == 1 &&
                         !tensor->is_cpu() && !tensor->is_complex() &&
                         (on_device.empty() || tensor->device() == on_device.front().device());
      numbers.set(name, waits ? 0 : scalar.read(name));
      if (!waits) continue;
      names.push_back(name);
      on_device.push_back(tensor->detach().reshape({}).to(at::kDouble));
    }
  }
  if (names.empty()) return numbers;
  const at::Tensor values = at::stack(on_device).cpu();
  for (size_t i = 0; i < names.size(); ++i) {
    numbers.set(names[i], values.const_data_ptr<double>()[i]);
  }
  return numbers;
}

}  // namespace stepop
