#include "runtime/train/step/op_warnings.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

namespace stepop {
namespace {

/// The warnings of the innermost op.
thread_local OpWarnings* current = nullptr;

/// What LibTorch's warning of a loss of shapes that repeat each other begins with.
constexpr const char* kResized = "An output with one or more elements was resized";

constexpr std::array<std::string_view, 4> kLosses = {"aten::mse_loss", "aten::l1_loss",
                                                     "aten::smooth_l1_loss", "aten::huber_loss"};

/// Whether each of two shapes is repeated to fit the other, as [16, 1] and [16] are.
bool repeat_each_other(at::IntArrayRef a, at::IntArrayRef b) {
  const auto size = [](at::IntArrayRef shape, size_t from_end) {
    return from_end < shape.size() ? shape[shape.size() - 1 - from_end] : 1;
  };
  bool repeats_a = false;
  bool repeats_b = false;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    repeats_a = repeats_a || (size(a, i) == 1 && size(b, i) > 1);
    repeats_b = repeats_b || (size(b, i) == 1 && size(a, i) > 1);
  }
  return repeats_a && repeats_b;
}

std::unique_ptr<at::ObserverContext> look_at_loss(const at::RecordFunction& call) {
  const std::string_view name = call.name();
  if (current == nullptr || std::ranges::find(kLosses, name) == kLosses.end()) return nullptr;
  const auto inputs = call.inputs();
  if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return nullptr;
  const at::Tensor& output = inputs[0].toTensor();
  const at::Tensor& target = inputs[1].toTensor();
  if (!output.defined() || !target.defined()) return nullptr;
  if (!repeat_each_other(output.sizes(), target.sizes())) return nullptr;
  current->warn_of_loss(fmt::format(
      "{} of [{}] and [{}] takes the difference of each number to each other one, not of each "
      "example to its own: give both the same shape, as .squeeze(1) or .unsqueeze(1) does",
      name.substr(name.find("::") + 2), fmt::join(output.sizes(), ", "),
      fmt::join(target.sizes(), ", ")));
  return nullptr;
}

}  // namespace

OpWarnings::OpWarnings(const Context& context, const std::string& split, const std::string& op)
    : log_(context.log),
      split_(split),
      op_(op),
      before_(c10::WarningUtils::get_warning_handler()),
      outer_(std::exchange(current, this)) {
  c10::WarningUtils::set_warning_handler(this);
  if (outer_ != nullptr || context.position.global_step > 0) return;
  loss_watch_ = at::addThreadLocalCallback(at::RecordFunctionCallback(look_at_loss)
                                               .needsInputs(true)
                                               .scopes({at::RecordScope::FUNCTION}));
}

OpWarnings::~OpWarnings() {
  if (loss_watch_) at::removeCallback(*loss_watch_);
  c10::WarningUtils::set_warning_handler(before_);
  current = outer_;
}

void OpWarnings::process(const c10::Warning& warning) {
  // A warning of c10d's reducer, which the runtime asks to look for them.
  if (warning.msg().starts_with("find_unused_parameters=True was specified")) return;
  const bool is_of_loss = warning.msg().starts_with(kResized);
  if (!is_of_loss || log_.is_first(kResized)) warn_once(warning.msg());
}

void OpWarnings::warn_of_loss(const std::string& text) {
  log_.is_first(kResized);  // LibTorch's own words are not needed
  warn_once(text);
}

void OpWarnings::warn_once(const std::string& text) {
  std::string key = text;
  std::erase_if(key, [](char c) { return c >= '0' && c <= '9'; });
  if (log_.is_first(key)) log_.warn(fmt::format("{}/{}: {}", split_, op_, text));
}

}  // namespace stepop
