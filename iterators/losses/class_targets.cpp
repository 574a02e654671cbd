#include "iterators/losses/class_targets.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/step/value_checks.h"

namespace stepop {
namespace {

constexpr int64_t kLeftOut = -100;

/// The calls that convert `target` to the expected form, for messages.
std::string remedy(const at::Tensor& target, const std::vector<int64_t>& expected) {
  const bool is_wrapped = target.dim() == static_cast<int64_t>(expected.size()) + 1 &&
                          target.dim() > 1 && target.size(1) == 1;
  const bool is_of_type = target.scalar_type() == at::kLong;
  std::string calls = is_wrapped ? ".squeeze(1)" : "";
  if (!is_of_type) calls += ".to(at::kLong)";
  return calls.empty() ? "" : fmt::format("; {} makes it so", calls);
}

void check_values(const Batch& batch, const std::string& key, const at::Tensor& target,
                  int64_t classes) {
  if (target.is_cpu() && target.scalar_type() == at::kLong && target.is_contiguous()) {
    // A fast path for each training step: seven operations cost a small network a few percent.
    const auto* values = target.const_data_ptr<int64_t>();
    const auto fits = [&](int64_t value) {
      return (value >= 0 && value < classes) || value == kLeftOut;
    };
    if (std::all_of(values, values + target.numel(), fits)) return;
  }
  const at::Tensor is_wrong =
      target.lt(0).logical_or(target.ge(classes)).logical_and(target.ne(kLeftOut)).flatten();
  if (!is_wrong.any().item<bool>()) return;
  const auto place = is_wrong.to(at::kByte).argmax().item<int64_t>();
  const auto row = static_cast<size_t>(place / (target.numel() / target.size(0)));
  const std::string example =
      row < batch.indices().size() ? std::to_string(batch.indices()[row]) : "?";
  throw Error(
      fmt::format("\"{}\" of the example {} is {}: the network has {} outputs, classes 0 to {}",
                  key, example, target.flatten()[place].item<int64_t>(), classes, classes - 1));
}

}  // namespace

at::Tensor class_targets(const Batch& batch, const std::string& key, const at::Tensor& logits) {
  const at::Tensor target = batch[key];
  if (logits.dim() < 2) {
    throw Error(fmt::format("the network gives {}; expected logits [B, classes] for \"{}\"",
                            describe_tensor(logits), key));
  }
  if (target.is_floating_point() && target.sizes() == logits.sizes()) return target;
  std::vector<int64_t> expected = logits.sizes().vec();
  expected.erase(expected.begin() + 1);
  const bool is_of_type = target.scalar_type() == at::kLong || target.scalar_type() == at::kByte;
  if (!is_of_type || target.sizes() != expected) {
    throw Error(fmt::format("\"{}\" is {}; expected int64 {}, classes for the logits {}{}", key,
                            describe_tensor(target), shape_text(expected),
                            shape_text(logits.sizes().vec()), remedy(target, expected)));
  }
  const bool reads = target.is_cpu() || !at::GradMode::is_enabled() || ValueChecks::are_on();
  if (reads && target.numel() > 0) check_values(batch, key, target, logits.size(1));
  return target;
}

at::Tensor hard_classes(const at::Tensor& targets) {
  return targets.is_floating_point() ? targets.argmax(1) : targets;
}

}  // namespace stepop
