#include "iterators/losses/class_targets.h"

#include <ATen/TensorOperators.h>
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

/// What makes `target` a tensor of the expected shape [B, ...], or the logits fit it; for messages.
std::string remedy(const at::Tensor& target, const std::vector<int64_t>& expected,
                   const at::Tensor& logits) {
  const auto dimensions = static_cast<int64_t>(expected.size());
  const bool is_wrapped = target.dim() == dimensions + 1 && target.dim() > 1 && target.size(1) == 1;
  const bool is_picture = dimensions == 3 && target.dim() == 4 && target.is_floating_point() &&
                          (target.size(1) == 1 || target.size(1) == 3);
  if (is_picture) {
    return "; a mask that is read as a picture has numbers from -1 to 1: its class numbers are "
           "read "
           "by \"mask\" in place of \"image\", columns: {file: mask}, or are "
           ".squeeze(1).to(at::kLong) where they are whole";
  }
  const bool has_classes_last =
      logits.dim() > 2 && target.sizes() == logits.sizes().slice(0, logits.dim() - 1);
  if (has_classes_last) {
    return "; logits have their classes in the second dimension: .movedim(-1, 1) in the network "
           "puts them there";
  }
  const bool is_larger = dimensions == 3 && target.dim() == 3 && target.size(0) == expected[0];
  if (is_larger) {
    return fmt::format(
        "; the network has to give logits of {} x {} pixels, or \"size: [{}, {}]\" in the "
        "dataset's "
        "config makes masks of those it gives",
        target.size(1), target.size(2), expected[1], expected[2]);
  }
  const bool is_of_type = target.scalar_type() == at::kLong;
  std::string calls = is_wrapped ? ".squeeze(1)" : "";
  if (!is_of_type) calls += ".to(at::kLong)";
  return calls.empty() ? "" : fmt::format("; {} makes it so", calls);
}

void check_values(const Batch& batch, const std::string& key, const at::Tensor& target,
                  int64_t classes) {
  const at::Tensor is_wrong =
      target.lt(0).logical_or(target.ge(classes)).logical_and(target.ne(kLeftOutLabel)).flatten();
  if (!is_wrong.any().item<bool>()) return;
  const auto place = is_wrong.to(at::kByte).argmax().item<int64_t>();
  const auto row = static_cast<size_t>(place / (target.numel() / target.size(0)));
  const std::string example =
      row < batch.indices().size() ? std::to_string(batch.indices()[row]) : "?";
  const auto value = target.flatten()[place].item<int64_t>();
  std::string advice;
  if (value == 255) {
    advice = "; \"ignore: 255\" leaves it out, as void pixels of Pascal VOC and Cityscapes are";
  } else if (value < 0) {
    advice = fmt::format("; \"ignore: {}\" leaves it out", value);
  } else if (classes == 1) {
    advice = "; a network that decides between two classes has two outputs";
  }
  throw Error(fmt::format(
      "\"{}\" of the example {} is {}: the network has {}, classes 0 to {}{}", key, example, value,
      classes == 1 ? "1 output" : fmt::format("{} outputs", classes), classes - 1, advice));
}

}  // namespace

at::Tensor class_targets(const Batch& batch, const std::string& key, const at::Tensor& logits,
                         int64_t ignore) {
  at::Tensor target = batch[key];
  if (logits.dim() < 2) {
    throw Error(fmt::format("the network gives {}; expected logits [B, classes, ...] for \"{}\"",
                            describe_tensor(logits), key));
  }
  if (target.is_floating_point() && target.sizes() == logits.sizes()) return target;
  std::vector<int64_t> expected = logits.sizes().vec();
  expected.erase(expected.begin() + 1);
  const bool is_of_type = target.scalar_type() == at::kLong || target.scalar_type() == at::kByte;
  if (!is_of_type || target.sizes() != expected) {
    throw Error(fmt::format("\"{}\" is {}; expected int64 {}, classes for the logits {}{}", key,
                            describe_tensor(target), shape_text(expected),
                            shape_text(logits.sizes().vec()), remedy(target, expected, logits)));
  }
  target = target.to(at::kLong);
  const int64_t classes = logits.size(1);
  if (target.is_cpu() && target.is_contiguous()) {
    // A fast path for each training step: seven operations cost a small network a few percent.
    const auto* values = target.const_data_ptr<int64_t>();
    const auto* end = values + target.numel();
    const auto fits = [&](int64_t value) {
      return (value >= 0 && value < classes) || value == kLeftOutLabel || value == ignore;
    };
    if (std::all_of(values, end, fits)) {
      const bool is_there = ignore != kLeftOutLabel && std::find(values, end, ignore) != end;
      return is_there ? target.masked_fill(target.eq(ignore), kLeftOutLabel) : target;
    }
  }
  if (ignore != kLeftOutLabel) target = target.masked_fill(target.eq(ignore), kLeftOutLabel);
  const bool reads = target.is_cpu() || !at::GradMode::is_enabled() || ValueChecks::are_on();
  if (reads && target.numel() > 0) check_values(batch, key, target, classes);
  return target;
}

at::Tensor hard_classes(const at::Tensor& targets) {
  return targets.is_floating_point() ? targets.argmax(1) : targets;
}

}  // namespace stepop
