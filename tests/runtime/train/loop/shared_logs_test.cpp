// What several processes log, and what they agree on, beside what one would.

#include "runtime/train/loop/shared_logs.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "runtime/train/loop/agreement.h"
#include "tests/runtime/train/distributed/together.h"

namespace stepop {
namespace shared_logs_test {

using Texts = std::vector<std::string>;

std::string text_of(const OrderedMap<Logs>& logs) {
  std::string text;
  for (const auto& [op, result] : logs) {
    for (const auto& [key, scalar] : result.scalars) {
      text += fmt::format("{}/{} {:.12g}; ", op, key, scalar.read(key));
    }
    for (const auto& [key, words] : result.texts) text += fmt::format("{}/{} {}; ", op, key, words);
  }
  return text;
}

TEST_CASE("scalars are sums by weight over the processes, numbers and tensors; texts stay") {
  const Texts texts = together(3, [](World& world) {
    const double rank = world.rank();
    OrderedMap<Logs> logs;
    logs["train_op"].scalars.set("loss", 1 + rank);
    logs["log_op"].scalars.set("accuracy", at::full({}, rank));
    logs["log_op"].texts.set("words", fmt::format("of {}", rank));
    share_logs(world, logs, [&](const std::string& op) {
      return op == "train_op" ? 1.0 / 3 : (rank == 2 ? 0.5 : 0.25);
    });
    return text_of(logs);
  });
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    CHECK(texts[rank] ==
          fmt::format("train_op/loss 2; log_op/accuracy 1.25; log_op/words of {}; ", rank));
  }
}

TEST_CASE("what a process without an example logs counts for nothing, NaN included") {
  const Texts texts = together(2, [](World& world) {
    OrderedMap<Logs> logs;
    logs["train_op"].scalars.set("loss", world.is_root() ? 3.0 : NAN);
    share_logs(world, logs, [&](const std::string&) { return world.is_root() ? 1.0 : 0.0; });
    return text_of(logs);
  });
  CHECK(texts == Texts(2, "train_op/loss 3; "));
}

TEST_CASE("a NaN of a process that has examples is everybody's") {
  const Texts texts = together(2, [](World& world) {
    OrderedMap<Logs> logs;
    logs["train_op"].scalars.set("loss", world.is_root() ? 3.0 : NAN);
    share_logs(world, logs, [](const std::string&) { return 0.5; });
    return text_of(logs);
  });
  CHECK(texts == Texts(2, "train_op/loss nan; "));
}

TEST_CASE("processes that log other things are told so, with both lists") {
  const Texts texts = together(2, [](World& world) {
    OrderedMap<Logs> logs;
    logs["log_op"].scalars.set("loss", 1);
    if (!world.is_root()) logs["log_op"].scalars.set("extra", 2);
    share_logs(world, logs, [](const std::string&) { return 0.5; });
    return std::string("passed");
  });
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(text.find("what is logged in this step is not the same in all processes\n  rank 0 on ") !=
          std::string::npos);
    CHECK(text.find(": log_op/loss\n  rank 1 on ") != std::string::npos);
    CHECK(text.ends_with(": log_op/loss, log_op/extra"));
  }
}

TEST_CASE("the time is rank 0's; a signal and what a hook asks for, anybody's") {
  const Texts texts = together(3, [](World& world) {
    Agreement agreement(world);
    const int rank = world.rank();
    const auto text = [](const Agreement::View& view) {
      return fmt::format("{} {} {}{}{}{}{}{} ", view.seconds, view.signal, view.is_over_time,
                         view.has_change, view.asks_log, view.asks_checkpoint, view.asks_evaluation,
                         view.asks_stop);
    };
    std::string all = text(agreement.agree({.seconds = 10.0 + rank,
                                            .signal = rank == 2 ? 15 : 0,
                                            .is_over_time = rank != 0,
                                            .has_change = rank != 0,
                                            .asks_checkpoint = rank == 1}));
    all += text(agreement.agree({.seconds = 20.5,
                                 .is_over_time = rank == 0,
                                 .has_change = rank == 0,
                                 .asks_log = rank == 2,
                                 .asks_evaluation = rank == 0,
                                 .asks_stop = rank == 1}));
    const bool is_last = &agreement.last() == &agreement.agree({}) && agreement.last().signal == 0;
    return all + (is_last ? "none" : "not the last");
  });
  CHECK(texts == Texts(3,
                       "10 15 falsefalsefalsetruefalsefalse "
                       "20.5 0 truetruetruefalsetruetrue none"));
}

}  // namespace shared_logs_test
}  // namespace stepop
