#include "runtime/train/optim/non_finite.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/core/base/text.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

std::string finding_text(const std::string& subject, const std::optional<double>& value,
                         int64_t global_step) {
  const char* number = "nan or inf";
  if (value) number = std::isnan(*value) ? "nan" : *value > 0 ? "inf" : "-inf";
  return fmt::format("{} in {} in step {}", number, subject, global_step + 1);
}

/// From this size on LibTorch's sum, which uses its threads, is faster than our loop.
constexpr int64_t kManyNumbers = 1 << 18;

/// A number is finite when its bits without the sign, as an integer, are below those of infinity.
template <class Bits, Bits kInfinity>
[[gnu::always_inline]] inline bool all_finite(const void* data, int64_t count) {
  using Vector [[gnu::vector_size(32)]] = Bits;
  constexpr int64_t kLanes = 32 / sizeof(Bits);
  constexpr Bits kWithoutSign = std::numeric_limits<Bits>::max();
  const auto* bits = static_cast<const Bits*>(data);
  const auto raise = [bits](Vector & most, int64_t at) __attribute__((always_inline)) {
    Vector next;
    std::memcpy(&next, bits + at, sizeof(next));
    next &= kWithoutSign;
    most = next > most ? next : most;
  };
  // Four maxima, so that none waits for another.
  Vector first{};
  Vector second{};
  Vector third{};
  Vector fourth{};
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    raise(first, i);
    raise(second, i + kLanes);
    raise(third, i + 2 * kLanes);
    raise(fourth, i + 3 * kLanes);
  }
  for (; i + kLanes <= count; i += kLanes) raise(first, i);
  first = second > first ? second : first;
  third = fourth > third ? fourth : third;
  first = third > first ? third : first;
  Bits most = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) most = std::max<Bits>(most, first[lane]);
  for (; i < count; ++i) most = std::max(most, static_cast<Bits>(bits[i] & kWithoutSign));
  return most < kInfinity;
}

/// For `count` numbers of one of the four types.
[[gnu::always_inline]] inline bool all_finite(at::ScalarType type, const void* data,
                                              int64_t count) {
  switch (type) {
    case at::kFloat:
      return all_finite<int32_t, 0x7f800000>(data, count);
    case at::kDouble:
      return all_finite<int64_t, 0x7ff0000000000000>(data, count);
    case at::kHalf:
      return all_finite<int16_t, 0x7c00>(data, count);
    default:
      return all_finite<int16_t, 0x7f80>(data, count);
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

/// Whether `scan` can read the tensor.
bool can_scan(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  const bool is_known_type =
      type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
  return is_known_type && tensor.is_cpu() && tensor.layout() == at::kStrided &&
         tensor.is_non_overlapping_and_dense();
}

}  // namespace

OnNan read_on_nan(const Config& config) {
  const auto text = own_key<std::string>(config, "on_nan");
  if (text == "skip") return OnNan::kSkip;
  return text == "ignore" ? OnNan::kIgnore : OnNan::kStop;
}

NonFinite::NonFinite(std::string update, std::string subject, std::optional<double> value,
                     int64_t global_step)
    : Error(fmt::format("{}: {}: the update was not made. A smaller lr, a warmup or clip_norm may "
                        "prevent it; on_nan: skip leaves such updates out",
                        update, finding_text(subject, value, global_step))),
      update_(std::move(update)),
      subject_(std::move(subject)),
      value_(value),
      global_step_(global_step) {}

std::string NonFinite::finding() const { return finding_text(subject_, value_, global_step_); }

namespace {

bool is_bad(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return false;
  return can_scan(tensor) ? !scan(tensor.scalar_type(), tensor.const_data_ptr(), tensor.numel())
                          : !std::isfinite(tensor.abs().amax().item<double>());
}

bool may_be_infinite(const std::string& buffer) {
  return !buffer.ends_with("running_mean") && !buffer.ends_with("running_var");
}

}  // namespace

void check_weights(const State& state, const FiniteNames& names, int64_t global_step) {
  std::vector<std::string> weights;
  std::vector<std::string> buffers;
  double value = 0;
  const auto look = [&](const std::string& name, std::vector<std::string>& bad, bool only_nan) {
    const auto found = state.find(name);
    if (found == state.end() || !is_bad(found->second)) return;
    if (only_nan && !found->second.isnan().any().item<bool>()) return;
    if (weights.empty() && buffers.empty()) value = first_non_finite(found->second);
    bad.push_back(name);
  };
  for (const auto& name : names.weights) look(name, weights, false);
  for (const auto& name : names.buffers) look(name, buffers, may_be_infinite(name));
  if (weights.empty() && buffers.empty()) return;
  const char* number = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (weights.empty()) {
    throw NonFiniteWeights(fmt::format(
        "{} in the buffers {} after step {}, though the weights are finite: they are not saved. "
        "Running statistics take it from what their layer was given: NaN in the data, numbers too "
        "large for the precision, or a batch whose update on_nan: skip left out",
        number, list_text(buffers), global_step));
  }
  throw NonFiniteWeights(fmt::format(
      "{} in the weights {} after step {}, though every loss and gradient was finite: they are not "
      "saved. A smaller lr, a warmup or clip_norm may prevent it",
      number, list_text(weights), global_step));
}

bool is_finite(const at::Tensor& tensor) {
  if (tensor.is_sparse()) return is_finite(tensor._values());
  const int64_t count = tensor.numel();
  if (can_scan(tensor)) {
    // A finite sum has finite parts; a sum that is not finite may have overflowed.
    if (count >= kManyNumbers && std::isfinite(tensor.detach().sum().item<double>())) return true;
    return scan(tensor.scalar_type(), tensor.const_data_ptr(), count);
  }
  return at::isfinite(tensor.detach()).all().item<bool>();
}

double first_non_finite(const at::Tensor& tensor) {
  if (tensor.is_sparse()) return first_non_finite(tensor._values());
  const at::Tensor numbers = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* begin = numbers.const_data_ptr<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (!std::isfinite(begin[i])) return begin[i];
  }
  return 0;
}

void DeviceFiniteCheck::begin(const at::Device& device) {
  if (!found_.defined()) {
    found_ = at::zeros({}, at::TensorOptions(at::kFloat).device(device));
    one_ = at::ones({}, found_.options());
    left_out_ = at::zeros({}, found_.options().dtype(at::kDouble));
    good_ = at::zeros_like(left_out_);
  } else if (!is_sticky_) {
    found_.zero_();
  }
}

void DeviceFiniteCheck::note(int64_t global_step) {
  last_.reset();
  steps_.push_back(global_step);
}

const at::Tensor& DeviceFiniteCheck::check(const std::vector<at::Tensor>& tensors) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  const at::Device device = tensors.front().device();
  begin(device);
  std::vector<at::Tensor> here = std::exchange(losses_, {});
  here.insert(here.end(), tensors.begin(), tensors.end());
  const auto elsewhere_begin =
      std::stable_partition(here.begin(), here.end(),
                            [&](const at::Tensor& tensor) { return tensor.device() == device; });
  const std::vector<at::Tensor> elsewhere(elsewhere_begin, here.end());
  here.erase(elsewhere_begin, here.end());
  // The call multiplies by 1, which leaves every number unchanged.
  at::_amp_foreach_non_finite_check_and_unscale_(here, found_, one_);
  for (const auto& tensor : elsewhere) {
    at::Tensor found = at::zeros({}, found_.options().device(tensor.device()));
    at::_amp_foreach_non_finite_check_and_unscale_({tensor}, found, at::ones_like(found));
    at::maximum_out(found_, found_, found.to(device));
  }
  left_out_.add_(found_);
  if (!is_sticky_) good_.add_(left_out_.eq(0));
  return found_;
}

DeviceFiniteCheck::Reading DeviceFiniteCheck::read() const {
  if (!found_.defined()) return {};
  if (last_) return *last_;
  const at::Tensor numbers = at::stack({left_out_, good_}).cpu();
  const auto left_out = static_cast<size_t>(numbers.const_data_ptr<double>()[0]);
  const auto good = static_cast<size_t>(numbers.const_data_ptr<double>()[1]);
  last_ = Reading{};
  if (left_out > 0) {
    // All that follow the first are left out where the flag is sticky.
    const size_t first = is_sticky_ ? steps_.size() - left_out : good;
    last_ = Reading{static_cast<int64_t>(left_out), steps_.at(first)};
  }
  return *last_;
}

void DeviceFiniteCheck::reset() {
  if (!found_.defined()) return;
  last_ = Reading{};
  steps_.clear();
  left_out_.zero_();
  good_.zero_();
}

}  // namespace stepop
