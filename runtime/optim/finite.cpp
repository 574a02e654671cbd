#include "runtime/optim/finite.h"

#include <ATen/ops/isfinite.h>

#include <cmath>
#include <cstdint>

namespace stepop {
namespace {

/// From here on a sum of LibTorch, which uses its threads, is faster than our loop.
constexpr int64_t kManyNumbers = 1 << 18;

/// A number is NaN or infinite when all bits of its exponent are 1; adding the lowest of them then
/// carries into the sign. No branches, so that the compiler makes vectors of it.
template <class Bits, Bits kExponent>
bool all_finite(const void* data, int64_t count) {
  constexpr Bits kLowest = kExponent & static_cast<Bits>(~kExponent + 1);
  const auto* bits = static_cast<const Bits*>(data);
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) {
    found = static_cast<Bits>(found | static_cast<Bits>((bits[i] & kExponent) + kLowest));
  }
  return found >> (sizeof(Bits) * 8 - 1) == 0;
}

}  // namespace

bool is_finite(const at::Tensor& tensor) {
  const int64_t count = tensor.numel();
  if (tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_non_overlapping_and_dense()) {
    // A finite sum has finite parts; one that is not may have overflowed.
    if (count >= kManyNumbers && std::isfinite(tensor.detach().sum().item<double>())) return true;
    const void* data = tensor.const_data_ptr();
    switch (tensor.scalar_type()) {
      case at::kFloat:
        return all_finite<uint32_t, 0x7f800000U>(data, count);
      case at::kDouble:
        return all_finite<uint64_t, 0x7ff0000000000000U>(data, count);
      case at::kHalf:
        return all_finite<uint16_t, 0x7c00>(data, count);
      case at::kBFloat16:
        return all_finite<uint16_t, 0x7f80>(data, count);
      default:
        break;
    }
  }
  return at::isfinite(tensor.detach()).all().item<bool>();
}

double first_non_finite(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* begin = numbers.const_data_ptr<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (!std::isfinite(begin[i])) return begin[i];
  }
  return 0;
}

}  // namespace stepop
