// Evaluations without a training: of every checkpoint, of those to come, by a functor; with the
// real binary.
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace eval_all_test {

/// A run with checkpoints of the steps 4, 8 and 10.
struct ShortRun {
  ShortRun() {
    run_well(folder, "stepop -n a -b CONFIG -t --num_steps 10 --ckpt_freq 4 --eval_hook/freq 100");
    run = only_run(folder);
  }

  std::vector<int64_t> evaluated() const {
    std::vector<int64_t> steps;
    for (const auto& found : find_evaluations(folder.path(run))) steps.push_back(found.step);
    return steps;
  }

  ScratchFolder folder;
  std::string run;
};

TEST_CASE("eval_all evaluates every checkpoint that is whole") {
  const ShortRun run;
  REQUIRE((run.evaluated() == std::vector<int64_t>{10}));
  std::filesystem::resize_file(run.folder.path(run.run + "/train/checkpoints/model-8.safetensors"),
                               100);
  const CommandResult result = run_in(run.folder, "stepop -p " + run.run + " --eval_all true");
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("model-8.safetensors: damaged: ") != std::string::npos);
  CHECK(result.err.find("passed over") != std::string::npos);
  CHECK(result.out.find("(step 4)\nstep 4  validation/eval_op: loss ") != std::string::npos);
  CHECK(result.out.find("(step 10)\nstep 10  validation/eval_op: loss ") != std::string::npos);
  CHECK((run.evaluated() == std::vector<int64_t>{10, 4, 10}));
}

TEST_CASE("eval_filter chooses by steps, by names and by what was logged") {
  const ShortRun run;
  const std::string all = "stepop -p " + run.run + " --eval_all true --eval_filter/";
  run_well(run.folder, all + "steps '[8, 9]'");
  CHECK((run.evaluated() == std::vector<int64_t>{10, 8}));
  run_well(run.folder, all + "match '(0|4)$' " + "--eval_filter/until 9");
  CHECK((run.evaluated() == std::vector<int64_t>{10, 8, 4}));
  // The training evaluated the last step alone, so the others have no such number.
  run_well(run.folder, all + "where 'validation/eval_op/loss > 0'");
  CHECK((run.evaluated() == std::vector<int64_t>{10, 8, 4, 10}));
  const CommandResult none =
      run_in(run.folder, all + "where 'validation/eval_op/loss < 0' && echo fine");
  CHECK(none.err == "warning: no checkpoint was evaluated: eval_filter takes none of them\n");
  CHECK(none.out.find("fine") != std::string::npos);
  CHECK(run.evaluated().size() == 4);
}

TEST_CASE("a training with run_ahead waits for evaluations, and a signal ends the wait") {
  const ScratchFolder folder;
  const CommandResult result = run_well(
      folder, std::string(kUntil) +
                  "'" STEPOP_BINARY_DIR
                  "/stepop' -n a -b CONFIG -t --num_steps 10 --ckpt_freq 2 "
                  "--eval_hook null --checkpoints null --run_ahead 4 >out 2>err & pid=$!; "
                  "until_ok 'grep -q waiting out'; ls logs/*/train/checkpoints | grep -c model-; "
                  "kill -TERM $pid; wait $pid; echo $?; stepop -p logs/* -t >out2 2>err2 & pid=$!; "
                  "until_ok 'grep -q waiting out2'; "
                  "'" STEPOP_BINARY_DIR
                  "/stepop' -p logs/* --eval_forever true --eval_filter/from 8 "
                  "--eval_hook/eval_op validation/eval_op >out3 2>err3 & other=$!; wait $pid; "
                  "until_ok 'ls logs/*/eval/*/10/scalars.json'; kill $other; wait $other; echo $?");
  CHECK(result.out == "2\n143\n143\n");
  const std::string first = read_bytes(folder.path("out"));
  CHECK(first.find("step 4: run_ahead: waiting for evaluations, of which there is none yet; they "
                   "are made by:  stepop -p logs/") != std::string::npos);
  const std::string second = read_bytes(folder.path("out2"));
  CHECK(second.find("run_ahead: waiting for evaluations, ") != std::string::npos);
  CHECK(second.find("ended: all 10 steps are done\n") != std::string::npos);
  // It goes by checkpoints that the filter passes over, too.
  CHECK(read_bytes(folder.path(only_run(folder)) + "/eval/reached.json") == "{\"step\": 10}\n");
}

TEST_CASE("eval_forever waits for checkpoints until max_time is over") {
  const ShortRun run;
  const CommandResult result =
      run_well(run.folder, "stepop -p " + run.run + " --eval_forever true --max_time 5s");
  CHECK(result.out.find("(step 10)\n") != std::string::npos);
  CHECK(result.out.find("waiting for the next checkpoint\n") != std::string::npos);
  CHECK((run.evaluated() == std::vector<int64_t>{10, 10}));
}

TEST_CASE("eval_forever waits for the first checkpoint, and evaluates one that is written anew") {
  const ShortRun run;
  run_well(
      run.folder,
      std::string(kUntil) + "cd " + run.run +
          "; rm -r eval; mv train/checkpoints kept; mkdir train/checkpoints; cd ../..; "
          "'" STEPOP_BINARY_DIR "/stepop' -p " +
          run.run +
          " --eval_forever true >out 2>err & pid=$!; until_ok 'grep -q waiting out'; cd " +
          run.run +
          "; cp kept/model-10.safetensors train/checkpoints/; "
          "until_ok 'ls eval/*/10/scalars.json'; "
          // As by a training that went back: a file of step 8, another one of step 10.
          "cp kept/model-8.safetensors train/checkpoints/; until_ok 'ls eval/*/8/scalars.json'; "
          "cp kept/model-10.safetensors new; mv new train/checkpoints/model-10.safetensors; "
          "until_ok '[ $(ls eval/*/10/scalars.json | wc -l) = 2 ]'; "
          "kill -TERM $pid; wait $pid; [ $? = 143 ]");
  CHECK(read_bytes(run.folder.path("out")).find("waiting for the next checkpoint\nevaluating ") !=
        std::string::npos);
  CHECK((run.evaluated() == std::vector<int64_t>{8, 10, 10}));
}

TEST_CASE("a run without a checkpoint is not evaluated, unless one is waited for") {
  const ShortRun run;
  std::filesystem::remove_all(run.folder.path(run.run + "/train/checkpoints"));
  const CommandResult none = run_in(run.folder, "stepop -p " + run.run);
  CHECK(none.err ==
        "stepop: " + run.run +
            ": the run has no checkpoint to evaluate yet; --eval_forever true waits for "
            "those to come\n");
  CHECK(none.exit_code == 2);
  const CommandResult waited =
      run_well(run.folder, "stepop -p " + run.run + " --eval_forever true --max_time 5s");
  CHECK(waited.out.find("waiting for the next checkpoint\n") != std::string::npos);
}

TEST_CASE("eval_all without a run, or for one checkpoint, is refused") {
  const ShortRun run;
  const auto refused = [&](const std::string& words, const std::string& message) {
    const CommandResult result = run_in(run.folder, "stepop " + words);
    CHECK(result.err == "stepop: " + message + "\n");
    CHECK(result.exit_code == 2);
  };
  refused("-p " + run.run + " -c 4 --eval_all true", "eval_all and -c: -c is for one checkpoint");
  refused("-b '" STEPOP_SOURCE_DIR "/configs/digits.yaml' -c " + run.run +
              "/train/checkpoints/model-4.safetensors --eval_forever true",
          "eval_forever takes the checkpoints of a run: name it with -p");
}

TEST_CASE("a functor evaluates in place of the iterator, with its own callbacks") {
  const ShortRun run;
  const CommandResult result = run_well(
      run.folder, "stepop -p " + run.run + " --eval_functor Predict --eval_functor/output logits");
  CHECK(result.out.find("eval_op/accuracy: ") == std::string::npos);
  const auto found = find_evaluations(run.folder.path(run.run));
  REQUIRE(found.size() == 2);
  const EvalFile by_iterator(found[0].outputs);
  const EvalFile by_functor(found[1].outputs);
  CHECK((by_functor.keys() == std::vector<std::string>{"outputs/logits"}));
  CHECK(by_functor.read("outputs/logits").equal(by_iterator.read("outputs/logits")));

  const CommandResult more =
      run_well(run.folder, "stepop -p " + run.run +
                               " --eval_functor '{class: Predict, output: logits}'"
                               " --eval_hook/eval_callbacks/accuracy accuracy");
  CHECK(more.out.find("validation/eval_op/accuracy: accuracy") != std::string::npos);
}

TEST_CASE("an unknown functor is refused with those that there are") {
  const ShortRun run;
  const CommandResult result =
      run_in(run.folder, "stepop -p " + run.run + " --eval_functor Predikt");
  CHECK(result.err.find("unknown functor \"Predikt\": did you mean \"Predict\"? Known are: "
                        "Predict, Generate\n") != std::string::npos);
  CHECK(result.exit_code == 2);
}

}  // namespace eval_all_test
}  // namespace stepop
