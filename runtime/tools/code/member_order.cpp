#include "runtime/tools/code/member_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace stepop {
namespace {

/// The structs that user code writes in braces; the test of this file checks their order.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOrders = {
    {{"StepOps", ".train_op, .log_op, .eval_op, .train_ops, .log_ops, .eval_ops"},
     {"Logs", ".scalars, .images, .videos, .audio, .texts, .histograms, .curves"},
     {"EvalOutputs", ".outputs, .labels"},
     {"Example", ".tensors, .texts"}}};

std::string advice(std::string_view name, std::string_view order) {
  return fmt::format(
      "C++ needs members in the order of their struct; any of them may be left out; stepop::{}: "
      "{}\n",
      name, order);
}

/// What follows `words` in their line of `message`; empty without them.
std::string_view rest_of_line(std::string_view message, std::string_view words) {
  const size_t begin = message.find(words);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = message.substr(begin + words.size());
  return rest.substr(0, rest.find('\n'));
}

/// The two fields in `'labels' will be initialized after field 'outputs'`, as in a text of kOrders.
std::array<std::string, 2> fields_of(std::string_view line) {
  std::array<std::string, 2> fields;
  for (auto& field : fields) {
    line.remove_prefix(std::min(line.size(), line.find('\'') + 1));
    const size_t end = line.find('\'');
    field = fmt::format(".{},", line.substr(0, end));
    line.remove_prefix(std::min(line.size(), end + 1));
  }
  return fields;
}

}  // namespace

std::string member_order(std::string_view message) {
  // The quotes of GCC depend on the shell's language.
  const std::string_view gcc = rest_of_line(message, "does not match declaration order in ");
  // Clang does not name the struct.
  const std::string_view clang =
      rest_of_line(message, "field designators to be specified in declaration order; field ");
  if (gcc.empty() && clang.empty()) return {};
  const auto fields = fields_of(clang);
  for (const auto& [name, order] : kOrders) {
    const bool is_it =
        clang.empty()
            ? gcc.find(fmt::format("stepop::{}", name)) != std::string_view::npos
            : std::ranges::all_of(fields, [list = fmt::format("{},", order)](const auto& field) {
                return list.find(field) != std::string::npos;
              });
    if (is_it) return advice(name, order);
  }
  return {};
}

}  // namespace stepop
