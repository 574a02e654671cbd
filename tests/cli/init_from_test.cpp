// A training that begins with weights from elsewhere; with the real binary.
#include <ATen/ops/equal.h>  // before doctest: LibTorch has a CHECK of its own
#include <doctest/doctest.h>

#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "tests/cli/digits_run.h"
#include "tests/same_state.h"

namespace stepop {
namespace cli_init_from_test {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("init_from gives a fresh run its weights, and a run that goes on does not need them") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("weights"));
  std::filesystem::copy(whole_run().checkpoint, folder.path("weights/a.safetensors"));
  folder.write("weights/init.yaml", "init_from: a.safetensors\n");
  // No step changes a weight, so that the checkpoint shows what it began with.
  const std::string still = " -t --optimizer 'SGD' --optimizer/lr 0";
  const CommandResult fresh = run_well(
      folder, "stepop -n a -b CONFIG weights/init.yaml --num_steps 1" + still, kNoWeightChanges);
  const std::string file =
      std::filesystem::canonical(folder.path("weights")).string() + "/a.safetensors";
  CHECK(contains(fresh.out, "init_from model: 10 of 10 tensors from " + file + "\n"));
  CHECK(contains(fresh.out, "init_from: " + file + "\n"));  // in the resolved config
  const State before = load_checkpoint(whole_run().checkpoint).tensors;
  State after = state_after(folder, 1);
  CHECK(differences({{"w", after.at("model.fc1.weight")}},
                    {{"w", before.at("model.fc1.weight")}}) == "");

  std::filesystem::remove(file);
  const CommandResult again =
      run_well(folder, "stepop -p " + only_run(folder) + " -t --num_steps 2", kNoWeightChanges);
  CHECK_FALSE(contains(again.out, "init_from model"));
  CHECK(differences(state_after(folder, 2), after).find("model.") == std::string::npos);
}

TEST_CASE("weights from elsewhere are evaluated without a run") {
  const ScratchFolder folder;
  const auto made = run_well(folder, "stepop -n w -b CONFIG --init_from " + whole_run().checkpoint);
  CHECK(made.out.find("step 0  validation/eval_op: loss ") != std::string::npos);
  CHECK(made.out.find("init_from ") != std::string::npos);
  const std::string run = only_run(folder);
  CHECK(run.ends_with("_w"));
  const auto found = find_evaluations(folder.path(run));
  REQUIRE(found.size() == 1);
  CHECK(EvalFile(found[0].outputs)
            .read("outputs/logits")
            .equal(EvalFile(whole_run().outputs).read("outputs/logits")));
  const CommandResult nothing = run_in(folder, std::string("stepop -b '") + kConfig + "'");
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.err ==
        "stepop: nothing to evaluate: give a run with -p, a checkpoint with -c, or weights with "
        "--init_from; -t trains\n");
}

TEST_CASE("weights that do not fit end a start before it has its folder, at their place") {
  const ScratchFolder folder;
  const std::string line = "stepop -n a -b " + std::string(kConfig) + " -t --init_from ";
  CommandResult result = run_in(folder, line + "none.safetensors");
  CHECK(result.exit_code == 2);
  CHECK(contains(result.err, "stepop: command line: init_from: there is no file /"));
  result = run_in(folder, line + whole_run().checkpoint + " --model/hidden '[30, 84]'");
  CHECK(result.exit_code == 2);
  CHECK(result.err == "stepop: command line: init_from: " + whole_run().checkpoint +
                          ": 7 of the 10 tensors of the network \"model\" fit ({path: ..., strict: "
                          "false} loads them), these do not:\n"
                          "  of another shape or type (3):\n"
                          "    fc1.bias: [120] in the file, [30] here\n"
                          "    fc1.weight: [120, 64] in the file, [30, 64] here\n"
                          "    fc2.weight: [84, 120] in the file, [84, 30] here\n");
  CHECK(only_run(folder) == "");
}

}  // namespace cli_init_from_test
}  // namespace stepop
