#include <ATen/ops/eq.h>

#include "eval_out/callbacks/classes.h"

namespace stepop {
namespace {

Logs accuracy(const CallbackArguments& arguments) {
  const Classes classes(arguments);
  int64_t correct = 0;
  for_each_block(classes.rows(), classes.rows_per_block(), [&](int64_t first, int64_t count) {
    const Classes::Block block = classes.read(first, count);
    correct += at::eq(block.predicted, block.truth).sum().item<int64_t>();
  });
  Logs logs;
  logs.scalars.set("accuracy", static_cast<double>(correct) / static_cast<double>(classes.rows()));
  return logs;
}

STEPOP_REGISTER_CALLBACK(accuracy, accuracy,
                         {"The share of examples whose largest logit is that of their class.",
                          class_parameters()});

}  // namespace
}  // namespace stepop
