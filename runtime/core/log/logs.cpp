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

OrderedMap<double> read_scalars(const OrderedMap<Logs>& logs) {
  OrderedMap<double> numbers;
  std::vector<std::string> names;
  std::vector<at::Tensor> on_device;
  for (const auto& [op, result] : logs) {
    for (const auto& [key, scalar] : result.scalars) {
      const std::string name = op + "/" + key;
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
