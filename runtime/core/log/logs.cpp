#include "runtime/core/log/logs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stepop {

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

}  // namespace stepop
