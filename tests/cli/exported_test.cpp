// Trainings of exported networks by the real program: against a loop of PyTorch, killed and
// resumed, and in two processes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/cli/exported_run.h"
#include "tests/same_state.h"

namespace stepop {
namespace cli_exported_test {

using namespace exported_run;

TEST_CASE("20 steps of an exported network have the losses and weights of PyTorch's own loop") {
  check_like_python("float32", "", 1e-4);
}

TEST_CASE("an exported network in channels_last has the losses of PyTorch's own loop") {
  check_like_python("float32", "--channels_last true", 1e-4);
}

TEST_CASE(
    "averages by swa keep the training's statistics of a network from Python, which is said") {
  const Folder folder;
  const auto result = run_in(folder, "stepop -n a -b a.yaml -t --swa '{from: 5, every: 5}'");
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("swa: the batch normalization of model is part of a file of Python: its "
                        "statistics are those of the training, and are not measured for the "
                        "averages") != std::string::npos);
}

TEST_CASE("an exported network in bfloat16 has the losses of PyTorch's autocast") {
  check_like_python("bfloat16", "--precision bfloat16", 1e-3);
}

TEST_CASE("a part of an exported network is frozen by its name in Python") {
  check_like_python("frozen", "--freeze '[{match: \"^model\\\\.features\\\\.0\\\\.\"}]'", 1e-4);
}

TEST_CASE("killed twice and resumed, a training of an exported network ends with the same bits") {
  check_killed_twice("--model/path drops.pt2");
}

TEST_CASE("an exported network has the weights of the same in C++, also in two processes") {
  const std::string in_cpp = "{class: MLP, inputs: 64, hidden: [16]}";
  const std::string exported = "{class: Exported, path: layers.pt2}";
  for (const int processes : {1, 2}) {
    CAPTURE(processes);
    const auto train = [&](const ScratchFolder& folder, const std::string& model) {
      run_well(folder, fmt::format("stepop -n a -b a.yaml -t --model '{}' --init_from layers.pth "
                                   "--processes {}",
                                   model, processes));
    };
    const Folder ours, theirs;
    train(ours, exported);
    train(theirs, in_cpp);
    // A network in C++ draws its first weights.
    CHECK(differences(state_after(ours, 20), state_after(theirs, 20)) == "random.cpu ");
    CHECK(values_of(ours, "train/log_op/loss") == values_of(theirs, "train/log_op/loss"));
  }
}

TEST_CASE("two processes keep running statistics of networks from Python, and resume") {
  for (const std::string model :
       {"{class: Exported, path: plain.pt2}", "{class: TorchScript, path: plain.pt}"}) {
    CAPTURE(model);
    const std::string train = "stepop -n a -b a.yaml -t --processes 2 --model '" + model + "' ";
    const Folder whole, parts;
    run_well(whole, train);
    run_well(parts, train + "--stop_at 7");
    run_well(parts, "stepop -p logs/* -t --stop_at null");
    CHECK(differences(state_after(parts, 20), state_after(whole, 20)) == "");
  }
}

TEST_CASE("synchronised batch normalization of an exported network has the batch of all") {
  check_like_python("float32", "--processes 2 --distributed/sync_batch_norm true", 1e-4);
}

}  // namespace cli_exported_test
}  // namespace stepop
