#include <ATen/ops/arange.h>
#include <ATen/ops/eq.h>
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "eval_out/callbacks/classes.h"
#include "eval_out/hdf5/hdf5_values.h"

namespace stepop {
namespace {

Logs accuracy(const CallbackArguments& arguments) {
  const Classes classes(arguments);
  int64_t correct = 0;
  int64_t rows = 0;
  for_each_block(classes.rows(), classes.rows_per_block(), [&](int64_t first, int64_t count) {
    const Classes::Block block = classes.read(first, count);
    correct += at::eq(block.predicted, block.truth).sum().item<int64_t>();
    rows += block.rows();
  });
  Logs logs;
  logs.scalars.set("accuracy", static_cast<double>(correct) / classes.counted(rows));
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    accuracy, accuracy,
    {"The share of examples, or of pixels, whose largest logit is that of their class.",
     class_parameters()});
STEPOP_CALLBACK_KEYS(accuracy, {"logits", KeyParameter::From::kFile}, {"target"});

/// The parameter `k`: a number or a list of them, none above the number of classes.
std::vector<int64_t> read_k(const Config& params, int64_t classes) {
  if (!params.has("k")) {
    return classes >= 5 ? std::vector<int64_t>{1, 5} : std::vector<int64_t>{1};
  }
  const bool is_list = params.peek("k")->is_list();
  const auto wanted = is_list ? params.get<std::vector<int64_t>>("k")
                              : std::vector<int64_t>{params.get<int64_t>("k")};
  if (wanted.empty()) throw params.error("k", "expected at least one number");
  for (const int64_t k : wanted) {
    if (k >= 1 && k <= classes) continue;
    throw params.error(
        "k", fmt::format("expected 1 to {}, the number of classes, found {}", classes, k));
  }
  return wanted;
}

Logs top_k(const CallbackArguments& arguments) {
  const Classes classes(arguments, /*needs_scores=*/true);
  const std::vector<int64_t> wanted = read_k(arguments.params, classes.count());
  const at::Tensor numbers = at::arange(classes.count());
  std::vector<int64_t> hits(wanted.size(), 0);
  int64_t rows = 0;
  for_each_block(classes.rows(), classes.rows_per_block(), [&](int64_t first, int64_t count) {
    const Classes::Block block = classes.read(first, count);
    const at::Tensor truth = block.truth.unsqueeze(1);
    const at::Tensor own = block.scores.gather(1, truth);
    // For equal scores, the first class counts as larger, as in the accuracy.
    const at::Tensor before = block.scores.eq(own).logical_and(numbers.lt(truth));
    const at::Tensor rank = block.scores.gt(own).logical_or(before).sum(1);
    for (size_t i = 0; i < wanted.size(); ++i) {
      hits[i] += rank.lt(wanted[i]).sum().item<int64_t>();
    }
    rows += block.rows();
  });
  Logs logs;
  for (size_t i = 0; i < wanted.size(); ++i) {
    logs.scalars.set(fmt::format("top_{}", wanted[i]),
                     static_cast<double>(hits[i]) / classes.counted(rows));
  }
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    top_k, top_k,
    {"The share of examples whose class is among those with the k largest logits.",
     {{"logits", "logits", "the key of the scores [classes, ...] in the outputs"},
      {"target", "class",
       "the key of the true classes, in the outputs or the dataset's labels; -100 does not count"},
      {"k", "[1, 5]", "one or several; by default 5 needs five classes"}}});
STEPOP_CALLBACK_KEYS(top_k, {"logits", KeyParameter::From::kFile}, {"target"});
STEPOP_CLASS_CHECK(top_k, [](const Config& params, int64_t classes) { read_k(params, classes); });

}  // namespace
}  // namespace stepop
