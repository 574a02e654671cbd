#include "runtime/tools/code/member_order.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace stepop {
namespace {

/// The structs that user code writes in braces; the test of this file checks their order.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOrders = {
    {{"StepOps", ".train_op, .log_op, .eval_op, .train_ops, .log_ops, .eval_ops"},
     {"Logs", ".scalars, .images, .videos, .texts, .histograms, .curves"},
     {"EvalOutputs", ".outputs, .labels"},
     {"Example", ".tensors, .texts"}}};

}  // namespace

std::string member_order(std::string_view message) {
  constexpr std::string_view kWords = "does not match declaration order in ";
  const size_t begin = message.find(kWords);
  if (begin == std::string_view::npos) return {};
  // The quotes depend on the shell's language.
  const std::string_view rest = message.substr(begin + kWords.size());
  const std::string_view line = rest.substr(0, rest.find('\n'));
  for (const auto& [name, order] : kOrders) {
    if (line.find(fmt::format("stepop::{}", name)) == std::string_view::npos) continue;
    return fmt::format(
        "C++ needs members in the order of their struct; any of them may be left out; stepop::{}: "
        "{}\n",
        name, order);
  }
  return {};
}

}  // namespace stepop
