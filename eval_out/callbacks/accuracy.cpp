#include <ATen/ops/arange.h>
#include <ATen/ops/eq.h>
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "eval_out/callbacks/classes.h"
#include "eval_out/hdf5/hdf5_values.h"

namespace stepop {
namespace {

Logs accuracy(const CallbackArguments& arguments, const ClassKeys& keys) {
  const Classes classes(arguments, keys);
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
    {"The share of examples, or of pixels, whose largest logit is that of their class."});
STEPOP_CALLBACK_KEYS(accuracy, {"logits", KeyParameter::From::kFile}, {"target"});

/// The parameter `k` of `top_k`.
struct TopNumbers {
  std::vector<int64_t> k;  ///< Empty: 1, and 5 where there are five classes.

  void declare(Parameters& p) {
    const Config* config =
        p.describe_optional("k", "int | list of int",
                            "one or several; by default 1, and 5 where there are five classes");
    if (config == nullptr) return;
    k = config->peek("k")->is_list() ? config->get<std::vector<int64_t>>("k")
                                     : std::vector{config->get<int64_t>("k")};
    if (k.empty()) throw config->error("k", "expected at least one number");
  }

  /// Throws UsageError for one above the number of classes.
  std::vector<int64_t> of(int64_t classes, const Config& params) const {
    for (const int64_t one : k) {
      if (one >= 1 && one <= classes) continue;
      throw params.error(
          "k", fmt::format("expected 1 to {}, the number of classes, found {}", classes, one));
    }
    if (!k.empty()) return k;
    return classes >= 5 ? std::vector<int64_t>{1, 5} : std::vector<int64_t>{1};
  }
};

struct TopParams {
  ClassKeys keys;
  TopNumbers numbers;

  void declare(Parameters& p) {
    keys.declare(p, "the key of the scores [classes, ...] in the outputs");
    numbers.declare(p);
  }
};

Logs top_k(const CallbackArguments& arguments, const TopParams& params) {
  const Classes classes(arguments, params.keys, /*needs_scores=*/true);
  const std::vector<int64_t> wanted = params.numbers.of(classes.count(), arguments.params);
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
    top_k, top_k, {"The share of examples whose class is among those with the k largest logits."});
STEPOP_CALLBACK_KEYS(top_k, {"logits", KeyParameter::From::kFile}, {"target"});
STEPOP_CLASS_CHECK(top_k, [](const Config& params, int64_t classes) {
  read_parameters<TopNumbers>(params).of(classes, params);
});

}  // namespace
}  // namespace stepop
