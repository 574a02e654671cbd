// Starts that use what another run left: resuming, evaluating, weights, configs; with the real
// binary.

#include <ATen/ops/equal.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/core/config/config.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"

namespace stepop {
namespace restart_test {

namespace fs = std::filesystem;

TEST_CASE(
    "the same seed gives the same bits, with 0, 1 and 4 loader workers; another seed others") {
  const State none = trained("--n_data_processes 0");
  CHECK(differences(trained("--n_data_processes 1"), none) == "");
  CHECK(differences(trained("--n_data_processes 4"), none) == "");
  CHECK(differences(trained("--log_freq 1 --ckpt_freq 7"), none) == "");
  CHECK(differences(trained("--seed 2"), none).find("model.conv1.weight") != std::string::npos);
}

TEST_CASE("a run that stopped in the middle of an epoch goes on with the same bits") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 30");
  const std::string run = only_run(folder);
  const CommandResult result = run_well(folder, "stepop -p " + run + " -t --num_steps 46");
  CHECK(result.out.find("resuming at step 30 of 46 (1.304 epochs done, 448 examples into "
                        "the next) from "
                        "train/checkpoints/model-30.safetensors, written 0 s before the run "
                        "ended\n") != std::string::npos);
  CHECK(only_run(folder) == run);
  CHECK(differences(state_after(folder, 46), trained("")) == "");
  CHECK(result.out.find("the run was on") == std::string::npos);
  // And from an earlier checkpoint, which -c picks.
  const CommandResult again = run_well(folder, "stepop -p " + run + " -c 23 -t --num_steps 46");
  CHECK(again.out.find("\nwhat came after step 23 moved to train/superseded/") !=
        std::string::npos);
  CHECK(differences(state_after(folder, 46), trained("")) == "");
}

TEST_CASE(
    "--resume begins a run the first time, and resumes the newest run of the name after that") {
  const ScratchFolder folder;
  const std::string line = "stepop -n a -b CONFIG -t --resume ";
  run_well(folder, line + "--num_steps 30");
  const std::string run = only_run(folder);
  run_well(folder, "stepop -n a_b -b CONFIG -t --num_steps 1 --logs others");
  CHECK(run_well(folder, line + "--num_steps 40 --processes 2", "and not bit by bit")
            .out.find("resuming at step 30 of 40") != std::string::npos);
  CHECK(only_run(folder) == run);
  fs::remove_all(folder.path(run));

  // A machine that vanishes with its disk: the next one has a copy of the run's folder.
  const std::string mirrored =
      line + "--hooks '{copy: {class: Mirror, command: \"mkdir -p far && cp -r {folder} far/\"}}' ";
  run_well(folder, mirrored + "--num_steps 30");
  fs::remove_all(folder.path("logs"));
  const CommandResult again = run_well(
      folder, "ls -d logs/*_a >/dev/null 2>&1 || cp -r far logs; " + mirrored + "--num_steps 46");
  CHECK(again.out.find("resuming at step 30 of 46") != std::string::npos);
  CHECK(differences(state_after(folder, 46), trained("")) == "");

  const CommandResult wrong = run_in(folder, "stepop -p " + only_run(folder) + " -t --resume");
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err ==
        "stepop: --resume: resumes the newest run of a name, or begins it: -n NAME -b CONFIG -t "
        "--resume; without -p, -r and -d\n");
}

TEST_CASE("a start with another number of threads says that the bits may differ") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 2 --num_threads 2");
  const CommandResult result =
      run_well(folder, "stepop -p " + only_run(folder) + " -t --num_steps 3 --num_threads 1");
  CHECK(result.out.find("\nthe run was on 2 threads, this start has 1 thread: the bits may differ "
                        "from those of an undisturbed run\n") != std::string::npos);
}

TEST_CASE("a training whose run another host took for itself ends and saves nothing more") {
  const ScratchFolder folder;
  // The file is looked at every ten seconds.
  const CommandResult result =
      run_in(folder,
             kUntil + std::string("stepop -n a -b ") + kConfig +
                 " -t --num_epochs 1000000 --ckpt_freq 1000000 >out.txt 2>err.txt & training=$!; "
                 "until_ok 'ls logs/*/train/checkpoints/model-*'; "
                 "echo '{\"state\": \"running\", \"host\": \"elsewhere\", \"pid\": 7, \"started\": "
                 "\"2026-11-21T10-00-00\", \"boot\": \"b\", \"ticks\": \"1\"}' > taken.json; "
                 "cp taken.json logs/*/train/process.json; wait $training; echo status $?");
  CHECK(result.out == "status 1\n");
  const std::string run = only_run(folder);
  const std::string error = read_bytes(folder / "err.txt");
  CHECK(error.find("\nstepop: ") != std::string::npos);  // below a warning of the schedule
  CHECK(error.find("train/process.json: the run is now trained by process 7 on elsewhere, since "
                   "2026-11-21T10-00-00, which saw no heartbeat of this one, ") !=
        std::string::npos);
  CHECK(read_bytes(folder / (run + "/train/process.json")) == read_bytes(folder / "taken.json"));
}

TEST_CASE("a run without a checkpoint tells what changed since its last start") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 5");
  const std::string run = only_run(folder);
  fs::remove_all(folder.path(run + "/train/checkpoints"));
  const CommandResult again =
      run_well(folder, "stepop -p " + run + " -t --num_steps 4", "no checkpoint is there, though");
  CHECK(
      again.err.find("warning: " + run +
                     "/train/checkpoints: no checkpoint is there, though the last training ended "
                     "as \"done\" and left one: was the folder removed? starting again at step 0, "
                     "seed 1\n") != std::string::npos);
  CHECK(again.out.find(".yaml, but for:\n  num_steps: 5 -> 4\n") != std::string::npos);
}

TEST_CASE("a damaged checkpoint that -c picks is refused, with the way out") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 5");
  const std::string run = only_run(folder);
  const std::string path = run + "/train/checkpoints/model-5.safetensors";
  fs::resize_file(folder.path(path), 5);
  for (const char* wanted : {"latest", "5"}) {
    const CommandResult result =
        run_in(folder, std::string("stepop -p ") + run + " -t -c " + wanted);
    CHECK(result.exit_code == 1);
    CHECK(result.err ==
          "stepop: -c " + std::string(wanted) + ": " + path +
              ": damaged: it has 5 bytes, too few for a safetensors file; without -c the newest "
              "one that is whole is taken\n");
  }
}

TEST_CASE("-p alone evaluates the latest checkpoint, -c another one") {
  const WholeRun& trained_run = whole_run();
  const std::string run = only_run(trained_run.folder);
  const auto before = files_below(trained_run.root + "/train/checkpoints");
  const CommandResult latest = run_well(trained_run.folder, "stepop -p " + run);
  CHECK(latest.out.find("evaluating " + run + "/train/checkpoints/model-460.safetensors") !=
        std::string::npos);
  CHECK(latest.out.find("/460/outputs.h5") != std::string::npos);
  CHECK(latest.out.find("train/log_op") == std::string::npos);
  const CommandResult early = run_well(trained_run.folder, "stepop -p " + run + " -c 23");
  CHECK(early.out.find("/23/outputs.h5") != std::string::npos);
  CHECK(files_below(trained_run.root + "/train/checkpoints") == before);
  // A config of the run, and a checkpoint by its path.
  const std::string config = run + "/configs/" + files_below(trained_run.root + "/configs").back();
  const std::string path = run + "/train/checkpoints/model-46.safetensors";
  const CommandResult by_path = run_well(trained_run.folder, "stepop -p " + config + " -c " + path);
  CHECK(by_path.out.find("/46/outputs.h5") != std::string::npos);
}

TEST_CASE("a checkpoint alone is evaluated into a folder of its own") {
  const ScratchFolder folder;
  const CommandResult result =
      run_well(folder, "stepop -n other -b CONFIG -c " + whole_run().checkpoint);
  CHECK(only_run(folder).ends_with("_other"));
  CHECK(result.out.find("accuracy 0.9") != std::string::npos);
  CHECK(result.out.find("/460/outputs.h5") != std::string::npos);
}

TEST_CASE("-r takes the weights into a new run that counts from 0") {
  const ScratchFolder folder;
  const CommandResult result = run_well(folder, "stepop -n tuned -p " + whole_run().root +
                                                    " -r -t --num_steps 3 --optimizer/lr 1e-9");
  const std::string run = only_run(folder);
  CHECK(run.ends_with("_tuned"));
  CHECK(result.out.find("weights from " + whole_run().checkpoint) != std::string::npos);
  CHECK(result.out.find("step 3/3") != std::string::npos);
  const State after = state_after(folder, 3);
  const State before = load_checkpoint(whole_run().checkpoint).tensors;
  const at::Tensor change = after.at("model.fc3.weight").sub(before.at("model.fc3.weight"));
  CHECK(change.abs().max().item<double>() < 1e-6);
}

TEST_CASE("-d makes ten steps and evaluates five batches into logs/debug_runs") {
  const ScratchFolder folder;
  const CommandResult result = run_well(folder, "stepop -n try -b CONFIG -t -d");
  const std::string run = only_run(folder, "logs/debug_runs");
  CHECK(run.ends_with("_try"));
  CHECK(checkpoint_steps(folder.path(run) + "/train/checkpoints") == std::vector<int64_t>({10}));
  CHECK(result.out.find("ended: all 10 steps are done") != std::string::npos);
  const ScratchFolder other;
  const CommandResult short_run =
      run_well(other, "stepop -n try -b CONFIG -t -d --debug/max_steps 2 --debug/max_examples 64");
  CHECK(short_run.out.find("ended: all 2 steps are done") != std::string::npos);
  CHECK(run_python("import h5py, sys; print(h5py.File(sys.argv[1])['index'].shape)",
                   {other.path(only_run(other, "logs/debug_runs")) + "/eval/" +
                    fs::path(only_run(other, "logs/debug_runs")).filename().string() +
                    "/2/outputs.h5"}) == "(64,)\n");
}

TEST_CASE("-d on a run goes on for ten steps beside it, and counts its epochs to their end") {
  const ScratchFolder folder;
  const CommandResult result =
      run_well(folder, "stepop -p " + whole_run().root + " -t -d --log_freq 1");
  CHECK(only_run(folder, "logs/debug_runs").ends_with("_digits"));
  CHECK(result.out.find("(step 460)") != std::string::npos);
  CHECK(result.out.find("epoch 21/21  step 461/470  train/log_op: ") != std::string::npos);
  CHECK(result.out.find("epoch 21/21  step 470  validation/eval_op: ") != std::string::npos);
  CHECK(result.out.find("ended: all 470 steps are done") != std::string::npos);
  const CommandResult longer = run_well(folder, "stepop -n longer -p " + whole_run().root +
                                                    " -t -d --debug/max_steps 24 --log_freq 1");
  CHECK(longer.out.find("epoch 21/22  step 461/484  ") != std::string::npos);
  CHECK(longer.out.find("epoch 22/22  step 484  validation/eval_op: ") != std::string::npos);
}

TEST_CASE("-n with a run that is continued is refused: the run keeps its name") {
  const ScratchFolder folder;
  for (const std::string mode : {" -t", " -t --check"}) {
    CAPTURE(mode);
    const CommandResult refused = run_in(folder, "stepop -n other -p " + whole_run().root + mode);
    CHECK(refused.exit_code == 2);
    CHECK(refused.err == "stepop: -n other: -p " + whole_run().root +
                             " continues that run, which keeps its name: leave out -n; for a new "
                             "run that starts with its weights, add -r\n");
  }
}

TEST_CASE("--logs with a run that is continued is refused: it stays where it is") {
  const ScratchFolder folder;
  const CommandResult refused =
      run_in(folder, "stepop --logs elsewhere -p " + whole_run().root + " -t");
  CHECK(refused.exit_code == 2);
  CHECK(refused.err == "stepop: --logs elsewhere: it is for new runs; -p " + whole_run().root +
                           " stays where it is\n");
}

TEST_CASE("-l says how much is printed") {
  const ScratchFolder folder;
  CHECK(run_well(folder, "stepop -n a -b CONFIG -t --num_steps 2 -l warn").out == "");
  CHECK(only_run(folder).ends_with("_a"));
}

TEST_CASE("several configs are laid over each other; the printed config gives the same run") {
  const ScratchFolder folder;
  const std::string line = "config -b CONFIG " STEPOP_SOURCE_DIR
                           "/configs/small.yaml --optimizer/lr 3e-3 --batch_size=4";
  const std::string printed = run_well(folder, "stepop " + line).out;
  const Config config(parse_yaml(printed, {"printed.yaml", 0}));
  CHECK(config.get<std::vector<int64_t>>("model/hidden") == std::vector<int64_t>({32, 16}));
  CHECK(config.get<std::vector<int64_t>>("model/padding") == std::vector<int64_t>({2, 2}));
  CHECK(config.get<double>("optimizer/lr") == 3e-3);
  CHECK(config.get<int64_t>("batch_size") == 4);
  folder.write("elsewhere/printed.yaml", printed);
  const std::string again = run_well(folder, "cd elsewhere; stepop config -b printed.yaml").out;
  CHECK(again == printed);
  run_well(folder, "stepop -n a -b elsewhere/printed.yaml -t --num_steps 1");
}

TEST_CASE("the config that a run saves is the one that it printed, and trains again") {
  const WholeRun& run = whole_run();
  const std::string name = files_below(run.root + "/configs").back();
  CHECK(name.starts_with("train_"));
  const std::string saved = read_bytes(run.root + "/configs/" + name);
  CHECK(run.result.out.starts_with(without_comments(saved)));
  const ScratchFolder folder;
  folder.write("saved.yaml", saved);
  run_well(folder, "stepop -n a -b saved.yaml -t --num_steps 46");
  CHECK(differences(state_after(folder, 46), trained("")) == "");
}

}  // namespace restart_test
}  // namespace stepop
