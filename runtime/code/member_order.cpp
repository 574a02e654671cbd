#include "runtime/code/member_order.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace stepop {
namespace {

/// The structs that a user's code writes in braces; the test of this file holds their order.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOrders = {
    {{"StepOps", ".train_op, .log_op, .eval_op, .train_ops, .log_ops, .eval_ops"},
     {"Logs", ".scalars, .images, .videos, .texts, .histograms, .curves"},
     {"EvalOutputs", ".outputs, .labels"},
     {"Example", ".tensors, .texts"}}};

}  // namespace

std::string member_order(std::string_view message) {
  if (message.find("does not match declaration order") == std::string_view::npos) return {};
  for (const auto& [name, order] : kOrders) {
    if (message.find(fmt::format("declaration order in 'stepop::{}'", name)) ==
        std::string_view::npos) {
      continue;
    }
    return fmt::format(
        "C++ wants members in the order of their struct, any of them left out; stepop::{}: {}\n",
        name, order);
  }
  return {};
}

}  // namespace stepop
