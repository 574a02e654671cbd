// Several evaluations, as somebody uses them on the command line.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/digits_run.h"

namespace stepop {
namespace cli_evaluations_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("an evaluation with a name is shown, made alone, looked at again and switched off") {
  const ScratchFolder folder;
  folder.write("mine.py", "print('{\"rows\": 7}')\n");
  folder.write("two.yaml",
               "evaluations:\n"
               "  seen: {eval_op: train/eval_op, max_batches: 2, eval_callbacks: {mine: "
               "./mine.py}}\n");
  const auto trained = run_well(folder, "stepop -n a -b CONFIG two.yaml -t --num_steps 23");
  CHECK(contains(trained.out, "step 23  validation/eval_op: loss "));
  CHECK(contains(trained.out, "  seen/mine: rows 7"));
  CHECK(contains(trained.out, "/23/outputs.h5\n"));  // that of eval_hook is what is shown at last
  const std::string run = only_run(folder);

  const auto alone = run_well(folder, "stepop -p " + run);
  CHECK(contains(alone.out, "step 23  validation/eval_op: loss "));
  CHECK(contains(alone.out, "step 23  seen: loss "));

  // Killed in the second of them: the next start leaves the first alone, and ends the second.
  const std::string newest = "$(ls -d " + run + "/eval/*_a | tail -1)";
  run_well(folder, "cd " + newest + "/23; touch -d @978307200 outputs.h5; rm seen/scalars.json");
  const auto more = run_well(folder, "stepop -p " + run);
  CHECK(contains(more.out, "continuing the evaluation of "));
  CHECK_FALSE(contains(more.out, "step 23  validation/eval_op: "));
  CHECK(contains(more.out, "step 23  seen: loss "));
  CHECK(run_well(folder, "ls -d " + run + "/eval/*_a | wc -l; stat -c %Y " + newest +
                             "/23/outputs.h5; test -f " + newest +
                             "/23/seen/scalars.json && echo ok")
            .out == "2\n978307200\nok\n");

  // Its script is the run's own, as its config names it.
  const auto again =
      run_well(folder, "stepop eval $(ls -d " + run + "/eval/*_a/23/seen | head -1) -c mine");
  CHECK(contains(again.out, ": 128 rows of train at step 23"));
  CHECK(contains(again.out, "seen/mine/rows  7"));
  CHECK(contains(run_well(folder, "cat " + run + "/eval/*_a/23/seen/scalars.json").out,
                 "\"seen/mine/rows\":7"));

  const auto off =
      run_well(folder, "stepop -p " + run + " -t --num_steps 24 --evaluations/seen null");
  CHECK(contains(off.out, "step 24  validation/eval_op: loss "));
  CHECK_FALSE(contains(off.out, "step 24  seen: "));
}

}  // namespace cli_evaluations_test
}  // namespace stepop
