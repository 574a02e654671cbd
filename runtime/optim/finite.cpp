#include "runtime/optim/finite.h"

#include <ATen/ops/isfinite.h>

#include <cmath>
#include <cstdint>

namespace stepop {
namespace {

/// From here on a sum of LibTorch, which uses its threads, is faster than our loop.
constexpr int64_t kManyNumbers = 1 << 18;

/// A number is NaN or infinite when all bits of its exponent are 1; adding the lowest of them then
/// carries into the sign. Without branches and in blocks, of which the compiler makes vectors.
template <class Bits, Bits kExponent>
[[gnu::always_inline]] inline bool all_finite(const void* data, int64_t count) {
  constexpr Bits kLowest = kExponent & static_cast<Bits>(~kExponent + 1);
  constexpr int64_t kBlock = 128 / sizeof(Bits);
  const auto carried = [](Bits bits) { return static_cast<Bits>((bits & kExponent) + kLowest); };
  const auto* bits = static_cast<const Bits*>(data);
  Bits found[kBlock] = {};
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int64_t j = 0; j < kBlock; ++j)
      found[j] = static_cast<Bits>(found[j] | carried(bits[i + j]));
  }
  Bits any = 0;
  for (; i < count; ++i) any = static_cast<Bits>(any | carried(bits[i]));
  for (const Bits one : found) any = static_cast<Bits>(any | one);
  return any >> (sizeof(Bits) * 8 - 1) == 0;
}

/// For `count` numbers of one of the four types.
[[gnu::always_inline]] inline bool all_finite(at::ScalarType type, const void* data,
                                              int64_t count) {
  switch (type) {
    case at::kFloat:
      return all_finite<uint32_t, 0x7f800000U>(data, count);
    case at::kDouble:
      return all_finite<uint64_t, 0x7ff0000000000000U>(data, count);
    case at::kHalf:
      return all_finite<uint16_t, 0x7c00>(data, count);
    default:
      return all_finite<uint16_t, 0x7f80>(data, count);
  }
}

#ifdef __x86_64__
[[gnu::target("avx2")]] bool all_finite_avx2(at::ScalarType type, const void* data, int64_t count) {
  return all_finite(type, data, count);
}
#endif

bool scan(at::ScalarType type, const void* data, int64_t count) {
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return all_finite_avx2(type, data, count);
#endif
  return all_finite(type, data, count);
}

}  // namespace

bool is_finite(const at::Tensor& tensor) {
  const int64_t count = tensor.numel();
  const at::ScalarType type = tensor.scalar_type();
  const bool is_known_type =
      type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
  if (is_known_type && tensor.is_cpu() && tensor.layout() == at::kStrided &&
      tensor.is_non_overlapping_and_dense()) {
    // A finite sum has finite parts; one that is not may have overflowed.
    if (count >= kManyNumbers && std::isfinite(tensor.detach().sum().item<double>())) return true;
    return scan(type, tensor.const_data_ptr(), count);
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
