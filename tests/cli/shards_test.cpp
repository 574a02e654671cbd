// The real program on shards: as the README has it, and killed in the middle.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/cli/command.h"
#include "tests/cli/digits_run.h"
#include "tests/python.h"
#include "tests/same_state.h"

namespace stepop {
namespace shards_test {

/// Lines of the shell that pack the digits, of `examples` in each shard.
std::string pack(int examples) {
  std::string lines;
  for (const auto& [name, folder] :
       {std::pair("train", "train"), std::pair("test", "validation")}) {
    lines += fmt::format(
        "python3 {0}/runtime/data/streams/make_shards.py --idx "
        "{0}/configs/data/digits-{1}-images.idx.gz "
        "{0}/configs/data/digits-{1}-labels.idx.gz shards/{2} --examples {3} && ",
        STEPOP_SOURCE_DIR, name, folder, examples);
  }
  return lines + "true; ";
}

const std::string kLocal =
    "--datasets/train '{class: TarShards, path: shards/train}' "
    "--datasets/validation '{class: TarShards, path: shards/validation}' ";

/// Each shard comes a little late, so that a kill meets a training that reads.
const std::string kPiped =
    "--datasets/train '{class: TarShards, shuffle: {buffer: 300}, urls: "
    "\"shards/train/shard-{000000..000004}.tar\", "
    "pipe: \"sleep 0.1; cat {url}\", examples: 1442}' "
    "--datasets/validation '{class: TarShards, path: shards/validation}' ";

TEST_CASE("shards of the digits are packed and trained on as the README has it") {
  const ScratchFolder folder;
  const CommandResult result =
      run_well(folder, pack(100) + "stepop -n shards -b CONFIG -t --num_epochs 3 " + kLocal);
  CHECK(result.out.find("examples: 1442\n") != std::string::npos);
  CHECK(result.out.find("validation/eval_op/accuracy/accuracy") != std::string::npos);
  CHECK(state_after(folder, 69).size() > 5);
  const std::string run = only_run(folder);
  // What was evaluated is read again by callbacks that run afterwards.
  const CommandResult eval =
      run_well(folder, "cd " + run + "/eval/* && stepop eval -c examples 69/outputs.h5 | cat");
  CHECK(eval.out.find("examples") != std::string::npos);
  const CommandResult exported = run_well(folder, "stepop export " + run + " -o net.pt");
  CHECK(exported.out.find("compared  with the network, on examples of an evaluation: other "
                          "examples, batches of 1 and 5; largest difference 0\n") !=
        std::string::npos);
  // Predictions of rows that come by a command are the outputs of the evaluation of the same rows.
  folder.write("new.yaml",
               "datasets: {predict: {class: TarShards, keys: {png: image}, examples: 355, "
               "urls: 'shards/validation/shard-{000000..000003}.tar', pipe: 'cat {url}'}}\n");
  run_well(folder, "stepop predict " + run + " -b new.yaml");
  CHECK(run_python("import glob, sys, h5py\n"
                   "old, new = (h5py.File(glob.glob(sys.argv[1] + '/eval/*/' + name)[0])\n"
                   "            for name in ('69/outputs.h5', '69/new/outputs.h5'))\n"
                   "a, b = old['outputs/logits'][:], new['outputs/prediction'][:]\n"
                   "print(a.shape, abs(a - b).max() < 1e-5, new['index'][:3].tolist())",
                   {folder.path(run)}) == "(355, 10) True [0, 1, 2]\n");
}

TEST_CASE("a signal ends a start, and a look at the data, that wait for a command that hangs") {
  const ScratchFolder folder;
  // Without the signal it is an error after 20 s.
  const std::string hung =
      " --datasets/train '{class: TarShards, urls: [a.tar], examples: 100, timeout: 20, "
      "retries: 0, pipe: \"echo >started; exec sleep 100; {url}\"}'";
  const std::string config = std::string("-b ") + kConfig;
  for (const std::string& line : {"-n a " + config + " -t" + hung, config + " -t --check" + hung,
                                  "data " + config + " train" + hung}) {
    CAPTURE(line);
    const CommandResult result =
        run_in(folder, "rm -f started; '" STEPOP_BINARY_DIR "/stepop' " + line +
                           " & pid=$!; until [ -e started ]; do sleep 0.02; done; kill -INT $pid; "
                           "wait $pid");
    CHECK(result.exit_code == 130);
    const bool is_check = line.find("--check") != std::string::npos;
    const std::string answer =
        line.starts_with("data") ? ""
                                 : fmt::format("SIGINT: {}; once more ends at once\n",
                                               is_check ? "ending the check" : "finishing step 1");
    CHECK(result.err == answer + "stepop: SIGINT arrived\n");
    CHECK(only_run(folder).empty());
  }
}

TEST_CASE(
    "a training on shards that come by a command is killed twice, and ends with the same bits") {
  const ScratchFolder whole;
  // The program itself, since `stepop` is a function of the shell, which would be killed instead.
  const std::string program = "'" STEPOP_BINARY_DIR "/stepop' ";
  const std::string train = program + "-n a -b " + kConfig +
                            " -t --num_steps 69 --ckpt_freq 4 --eval_hook null --checkpoints null "
                            "--n_data_processes 2 " +
                            kPiped;
  run_well(whole, pack(300) + train);
  const ScratchFolder folder;
  const auto kill_at = [&](int step, const std::string& start) {
    return start + " & pid=$!; until_ok 'ls logs/*/train/checkpoints/model-" +
           std::to_string(step) + ".safetensors'; kill -9 $pid; wait $pid; ";
  };
  const CommandResult result = run_in(
      folder, "export OMP_NUM_THREADS=1; " + std::string(kUntil) + pack(300) + kill_at(8, train) +
                  kill_at(36, program + "-p logs/* -t --n_data_processes 1") +
                  "stepop -p logs/* -t");
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(differences(state_after(folder, 69), state_after(whole, 69)) == "");
}

TEST_CASE(
    "a command that fails ends a training with its own words, after what was trained is saved") {
  const ScratchFolder folder;
  run_well(folder, pack(300));
  std::string line =
      "stepop -n a -b CONFIG -t --eval_hook null --checkpoints null "
      "--datasets/train '{class: TarShards, shuffle: false, retries: 1, retry_wait: 0, examples: "
      "1442, "
      "urls: \"shards/train/shard-{000000..000004}.tar\", "
      "pipe: \"case {url} in *3.tar) echo no such bucket >&2; exit 7;; esac; cat {url}\"}' "
      "--datasets/validation '{class: TarShards, path: shards/validation}'";
  line.replace(line.find("CONFIG"), 6, kConfig);
  const CommandResult result = run_in(folder, line);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find(
            "datasets/train: shards/train/shard-000003.tar: the command failed 2 times: it "
            "ended with status 7: no such bucket") != std::string::npos);
  CHECK(result.err.find("saved") != std::string::npos);
}

}  // namespace shards_test
}  // namespace stepop
