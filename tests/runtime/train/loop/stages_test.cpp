// Which train ops are called, and in which order, with `stages` in the config.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace loop_stages_test {

/// What was called: `d1` is the op d in step 1.
std::string& calls() {
  static std::string text;
  return text;
}

class StagesIterator : public Iterator {
 public:
  using Iterator::Iterator;
  StepOps step_op(const Batch&) override {
    StepOps ops;
    for (const char* name : {"warm", "d", "g"}) {
      ops.train_ops[name] = [=, this] { calls() += fmt::format("{}{} ", name, global_step() + 1); };
    }
    return ops;
  }
};

STEPOP_REGISTER_ITERATOR(StagesIterator, {"For tests.", {}});

std::string config_of(const std::string& stages) {
  return "iterator: StagesIterator\nbatch_size: 4\nlog_ops: []\nn_data_processes: 0\nnum_epochs: "
         "3\n"
         "datasets: {train: {class: Synthetic, size: 16, shape: [1, 1, 1]}}\nstages:\n" +
         stages;
}

const std::string kGan =
    "- {train_ops: [train/warm], for: 0.5e}\n"
    "- {train_ops: [train/d], for: 3}\n"
    "- {train_ops: [train/g, {op: train/d, when: 2}], for: 2}\n";

std::string trained(TestRun& run) {
  calls().clear();
  run.train();
  return calls();
}

TEST_CASE("stages follow one another in a cycle, each op in the order of its stage") {
  TestRun run(config_of(kGan));
  CHECK(trained(run) == "warm1 warm2 d3 d4 d5 g6 d6 g7 warm8 warm9 d10 d11 d12 ");
}

TEST_CASE("a run that resumes within a stage calls what one that was never stopped calls") {
  TestRun before(config_of(kGan));
  trained(before);
  for (const int64_t step : {4, 8}) {
    CAPTURE(step);
    TestRun run(config_of(kGan), before, step);
    const std::string expected =
        step == 4 ? "d5 g6 d6 g7 warm8 warm9 d10 d11 d12 " : "warm9 d10 d11 d12 ";
    CHECK(trained(run) == expected);
  }
}

TEST_CASE("a last stage without a length lasts to the end") {
  TestRun run(
      config_of("- {train_ops: [train/warm], for: 1e}\n"
                "- {train_ops: [train/d, {op: train/g, when: 3}]}\n"));
  CHECK(trained(run) == "warm1 warm2 warm3 warm4 d5 d6 g6 d7 d8 d9 g9 d10 d11 d12 g12 ");
}

TEST_CASE("a stage with an op that nobody returns is an error before the first step") {
  TestRun run(config_of("- {train_ops: [train/d], for: 100}\n- {train_ops: [train/x]}\n"));
  CHECK(message_of([&] { run.session.check(); })
            .starts_with("test.yaml:9: stages/1/train_ops/0: train/x is due, but step_op of the "
                         "iterator StagesIterator did not "
                         "return it for the split train; it returned: "));
}

}  // namespace loop_stages_test
}  // namespace stepop
