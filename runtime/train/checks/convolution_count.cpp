#include "runtime/train/checks/convolution_count.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace stepop {
namespace {

/// Measured (tests/bench/convolutions.py): with fewer multiplications a thread, a convolution and
/// its gradients are as fast without oneDNN, or up to three times faster.
constexpr double kFewMultiplications = 2e6;
/// From this number of examples on LibTorch without oneDNN computes with NNPACK, which is slower.
constexpr int64_t kManyExamples = 16;

thread_local ConvolutionCount* watched_count = nullptr;

/// Where the arguments of `aten::_convolution` are.
enum Argument : size_t {
  kInput,
  kWeight,
  kStride = 3,
  kPadding,
  kDilation,
  kIsTransposed,
  kGroups = 8
};

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

/// The tensor, or an undefined one.
at::Tensor tensor_in(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor() : at::Tensor();
}

/// The arguments of the operation alone: a call by an interpreter shows its whole stack.
c10::ArrayRef<const c10::IValue> arguments_of(const at::RecordFunction& call) {
  const auto shown = call.inputs();
  const auto schema = call.operator_schema();
  const size_t count = schema ? schema->arguments().size() : shown.size();
  return shown.size() > count ? shown.slice(shown.size() - count) : shown;
}

bool is_convolution(const at::RecordFunction& call, c10::ArrayRef<const c10::IValue> arguments) {
  return std::string_view(call.name()) == "aten::_convolution" && arguments.size() > kGroups &&
         arguments[kStride].isIntList() && arguments[kPadding].isIntList() &&
         arguments[kDilation].isIntList() && arguments[kIsTransposed].isBool() &&
         arguments[kGroups].isInt();
}

/// The positions at which filters of these sizes are applied to an example.
double positions_of(at::IntArrayRef input, at::IntArrayRef weight,
                    c10::ArrayRef<const c10::IValue> arguments) {
  const auto stride = arguments[kStride].toIntVector();
  const auto padding = arguments[kPadding].toIntVector();
  const auto dilation = arguments[kDilation].toIntVector();
  // A list of one number holds for each size.
  const auto in = [](const std::vector<int64_t>& list, size_t i) {
    return list.at(i % list.size());
  };
  double positions = 1;
  for (size_t i = 0; i + 2 < weight.size(); ++i) {
    const int64_t filter = in(dilation, i) * (weight[i + 2] - 1) + 1;
    const int64_t size = input[i + 2] + 2 * in(padding, i);
    positions *= static_cast<double>((size - filter) / in(stride, i) + 1);
  }
  return positions;
}

void add_convolution(c10::ArrayRef<const c10::IValue> arguments) {
  const at::Tensor input = tensor_in(arguments[kInput]);
  const at::Tensor weight = tensor_in(arguments[kWeight]);
  if (!input.defined() || !weight.defined() || !input.is_cpu() || input.numel() == 0) return;
  const auto dilation = arguments[kDilation].toIntVector();
  watched_count->needs_onednn |= std::ranges::any_of(dilation, [](int64_t i) { return i > 1; }) ||
                                 arguments[kGroups].toInt() > 1;
  // A transposed one applies each filter to each position of its input.
  const double applied =
      arguments[kIsTransposed].toBool()
          ? static_cast<double>(input.numel()) / static_cast<double>(weight.size(0))
          : static_cast<double>(input.size(0)) *
                positions_of(input.sizes(), weight.sizes(), arguments);
  ++watched_count->convolutions;
  watched_count->multiplications += applied * static_cast<double>(weight.numel());
  watched_count->most_examples = std::max(watched_count->most_examples, input.size(0));
}

std::unique_ptr<at::ObserverContext> look_at_call(const at::RecordFunction& call) {
  const auto arguments = arguments_of(call);
  if (watched_count == nullptr || arguments.empty()) return nullptr;
  if (std::string_view(call.name()).starts_with("aten::lstm")) watched_count->needs_onednn = true;
  const at::Tensor first = tensor_in(arguments[0]);
  if (first.defined() && first.is_cpu() && is_half(first)) watched_count->needs_onednn = true;
  if (is_convolution(call, arguments)) add_convolution(arguments);
  return nullptr;
}

}  // namespace

bool ConvolutionCount::is_small(int threads) const {
  return convolutions > 0 && !is_slow_without_onednn() && mean() < kFewMultiplications * threads;
}

bool ConvolutionCount::is_slow_without_onednn() const {
  return convolutions > 0 && (needs_onednn || most_examples >= kManyExamples);
}

ConvolutionCounter::ConvolutionCounter(ConvolutionCount& count)
    : before_(std::exchange(watched_count, &count)),
      // One callback counts for the innermost counter.
      callback_(before_ != nullptr
                    ? at::INVALID_CALLBACK_HANDLE
                    : at::addThreadLocalCallback(at::RecordFunctionCallback(look_at_call)
                                                     .needsInputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}))) {}

ConvolutionCounter::~ConvolutionCounter() {
  if (before_ == nullptr) at::removeCallback(callback_);
  watched_count = before_;
}

}  // namespace stepop
