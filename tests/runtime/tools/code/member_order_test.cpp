#include "runtime/tools/code/member_order.h"

#include <doctest/doctest.h>

#include "runtime/data/batch.h"
#include "runtime/train/iterator/step_ops.h"

namespace stepop {
namespace member_order_test {

std::string said_of(const std::string& name) {
  return member_order("a.cpp:3:4: error: designator order for field 'stepop::" + name +
                      "::x' does not match declaration order in 'stepop::" + name + "'\n");
}

TEST_CASE(
    "members in another order than their struct's get that order below the compiler's words") {
  const std::string words =
      "C++ needs members in the order of their struct; any of them may be left out; stepop::";
  // Each struct as the line has it: another order would not compile.
  (void)StepOps{
      .train_op = {}, .log_op = {}, .eval_op = {}, .train_ops = {}, .log_ops = {}, .eval_ops = {}};
  CHECK(said_of("StepOps") ==
        words + "StepOps: .train_op, .log_op, .eval_op, .train_ops, .log_ops, .eval_ops\n");
  (void)Logs{.scalars = {},
             .images = {},
             .videos = {},
             .audio = {},
             .texts = {},
             .histograms = {},
             .curves = {}};
  CHECK(said_of("Logs") ==
        words + "Logs: .scalars, .images, .videos, .audio, .texts, .histograms, .curves\n");
  (void)EvalOutputs{.outputs = {}, .labels = {}};
  CHECK(said_of("EvalOutputs") == words + "EvalOutputs: .outputs, .labels\n");
  (void)Example{.tensors = {}, .texts = {}};
  CHECK(said_of("Example") == words + "Example: .tensors, .texts\n");
  // Clang names two fields, and not the struct; `texts` is in two structs.
  const auto clang_said = [](const std::string& field, const std::string& after) {
    return member_order(
        "one.cpp:3:37: error: ISO C++ requires field designators to be specified in declaration "
        "order; field '" +
        after + "' will be initialized after field '" + field +
        "' [-Werror,-Wreorder-init-list]\n");
  };
  CHECK(clang_said("train_op", "log_op").starts_with(words + "StepOps: "));
  CHECK(clang_said("images", "texts").starts_with(words + "Logs: "));
  CHECK(clang_said("tensors", "texts").starts_with(words + "Example: "));
  CHECK(clang_said("mine", "yours").empty());
  CHECK(said_of("Mine").empty());
  CHECK(member_order("error: expected ';'").empty());
}

}  // namespace member_order_test
}  // namespace stepop
