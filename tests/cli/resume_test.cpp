// What the README promises of a resume, with the real binary: max_time, damage, what
// differs, names that are not UTF-8.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/same_state.h"

namespace stepop {
namespace resume_test {

namespace fs = std::filesystem;

/// The warning of a training that ends long before the digits' schedule of rates does.
constexpr const char* kNoWarning = "Is its number of steps right?";

TEST_CASE("max_time ends a training saved and with status 0; it goes on with the same bits") {
  const ScratchFolder folder;
  const std::string steps = " -t --log_freq 100 --eval_hook/freq 1000000";
  const CommandResult some =
      run_well(folder, "stepop -n a -b CONFIG --num_steps 1000000 --max_time 1s" + steps);
  const std::string run = only_run(folder);
  CHECK(some.out.find("ended: max_time is over\nmax_time counts from each start; --max_time "
                      "null trains to the end\nsaved; resume with:  ") != std::string::npos);
  CHECK(read_bytes(folder.path(run) + "/train/process.json").find("\"stopped\"") !=
        std::string::npos);
  const auto saved = checkpoint_steps(folder.path(run) + "/train/checkpoints");
  REQUIRE_FALSE(saved.empty());
  const std::string to = std::to_string(saved.back() + 10);
  run_well(folder, "stepop -p " + run + " -t --max_time 1h --num_steps " + to);

  const ScratchFolder whole;
  run_well(whole, "stepop -n a -b CONFIG" + steps + " --num_steps " + to);
  const int64_t last = saved.back() + 10;
  CHECK(differences(state_after(folder, last), state_after(whole, last)) == "");
}

TEST_CASE("stop_at ends a start after that step, saved, as a signal does; it goes on the same") {
  const ScratchFolder folder;
  const CommandResult some =
      run_well(folder, "stepop -n a -b CONFIG -t --num_steps 46 --stop_at 30");
  const std::string run = only_run(folder);
  CHECK(some.out.find(
            "ended: stop_at: 30\n--stop_at null trains to the end\nsaved; resume with:  ") !=
        std::string::npos);
  const std::string state = read_bytes(folder.path(run) + "/train/process.json");
  CHECK(state.find("\"stopped\"") != std::string::npos);
  CHECK(checkpoint_steps(folder.path(run) + "/train/checkpoints").back() == 30);
  run_well(folder, "stepop -p " + run + " -t --stop_at null");
  CHECK(differences(state_after(folder, 46), trained("")) == "");
}

TEST_CASE(
    "a training whose folder is moved away ends as failed, and what was saved goes on there") {
  const ScratchFolder folder;
  const std::string train =
      "stepop -n a -b CONFIG -t --num_steps 1000000 --ckpt_freq 100 --eval_hook/freq 1000000";
  const CommandResult moved = run_well(
      folder, train +
                  " >out 2>err & for ((i = 0; i < 6000; ++i)); do "
                  "ls logs/*/train/checkpoints/model-200.* >/dev/null 2>&1 && break; sleep 0.02; "
                  "done; mv logs/* away; wait $!; echo $?");
  CHECK(lines_of(moved.out).back() == "1");
  const std::string error = read_bytes(folder.path("err"));
  CAPTURE(error);
  CHECK(error.find(" is gone; if it was moved, what was saved is in it: resume with  stepop -p "
                   "ITS_NEW_PLACE -t\n") != std::string::npos);
  const CommandResult rest = run_well(folder, "stepop -p away -t --num_steps 10000 --max_time 1s");
  CHECK(rest.out.find("resuming at step ") != std::string::npos);
}

TEST_CASE("a damaged newest checkpoint is named and skipped, and the end has the same bits") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 30 --ckpt_freq 10");
  const std::string run = only_run(folder);
  const std::string newest = folder.path(run) + "/train/checkpoints/model-30.safetensors";
  std::string bytes = read_bytes(newest);
  bytes[bytes.size() / 2] ^= 0x10;
  folder.write(run + "/train/checkpoints/model-30.safetensors", bytes);
  const CommandResult result =
      run_in(folder, "export OMP_NUM_THREADS=1; stepop -p " + run + " -t --num_steps 46");
  CHECK(result.exit_code == 0);
  CHECK(result.err.starts_with("warning: " + run +
                               "/train/checkpoints/model-30.safetensors: damaged: "));
  CHECK(result.err.ends_with("; using model-23.safetensors instead\n"));
  CHECK(result.out.find("resuming at step 23 of 46 ") != std::string::npos);
  CHECK(differences(state_after(folder, 46), trained("")) == "");
}

TEST_CASE("what differs from the checkpoint's config is taken, and shown") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t --num_steps 5");
  const CommandResult again =
      run_well(folder, "stepop -p " + only_run(folder) + " -t --num_steps 6 --optimizer/lr 1e-4");
  CHECK(again.out.find(".yaml, but for:\n  optimizer/lr: {class: cosine, ") != std::string::npos);
  CHECK(again.out.find("} -> 0.0001\n") != std::string::npos);
  CHECK(again.out.find("num_steps: 5 -> 6") == again.out.rfind("num_steps: 5 -> 6"));
  // From a checkpoint before the last change.
  const CommandResult earlier = run_well(
      folder, "stepop -p " + only_run(folder) + " -c 5 -t --num_steps 7 --optimizer/lr 1e-4");
  CHECK(earlier.out.find(".yaml, but for:\n  num_steps: 6 -> 7\n") != std::string::npos);
  CHECK(earlier.out.find("the config differs from the checkpoint's:\n  optimizer/lr: {") !=
        std::string::npos);
}

TEST_CASE("a resume and an evaluation name the config of the run, and print what differs alone") {
  const ScratchFolder folder;
  const std::string begun = run_well(folder, "stepop -n a -b CONFIG -t --num_steps 5").out;
  CHECK(begun.find("iterator: Classifier\n") != std::string::npos);
  const std::string run = only_run(folder);
  const std::string time = run.substr(5, 19);
  const std::string line = "\nconfig    " + run + "/configs/train_" + time + ".yaml";
  const std::string evaluated = run_well(folder, "stepop -p " + run).out;
  CHECK(evaluated.starts_with("command   stepop -p "));
  CHECK(evaluated.find(line + "\ndevice ") != std::string::npos);
  const std::string named = run_well(folder, "stepop -p " + run + " -n other --batch_size 8").out;
  CHECK(named.find(line + ", but for:\n") != std::string::npos);
  CHECK(named.find("\n  batch_size: 64 -> 8\n") != std::string::npos);
  CHECK(run_well(folder, "stepop -p " + run + " -l debug").out.find("iterator: Classifier\n") !=
        std::string::npos);
  const std::string other = run_well(folder, "stepop -p " + run + " -b CONFIG").out;
  CHECK(other.find("iterator: Classifier\n") != std::string::npos);
  CHECK(other.find("\nconfig    ") == std::string::npos);
}

TEST_CASE("a config that changed since the run began is said at a resume, until it is taken") {
  const ScratchFolder folder;
  folder.write("d.yaml", "include: [base.yaml]\n");
  folder.write("base.yaml", fmt::format("include: [{}]\nextra: {{lamp: red}}\n", kConfig));
  run_well(folder, "stepop -n a -b d.yaml -t --num_steps 4", kNoWarning);
  const std::string run = only_run(folder);
  const auto resumed = [&](const std::string& more) {
    return run_well(folder, "stepop -p " + run + " -t " + more, kNoWarning).out;
  };
  const std::string note = "config    the run's own; since it was made ";
  CHECK(resumed("--num_steps 6").find(note) == std::string::npos);

  folder.write("base.yaml", fmt::format("include: [{}]\nextra: {{lamp: green}}\n", kConfig));
  const std::string told = note + "base.yaml changed: -b d.yaml takes what is there now\n";
  CHECK(resumed("--num_steps 8").find(told) != std::string::npos);
  CHECK(resumed("--num_steps 10").find(told) != std::string::npos);
  CHECK(run_well(folder, "stepop -n a -b d.yaml -t --resume --num_steps 12", kNoWarning)
            .out.find(note + "base.yaml changed: -p " + run +
                      " -b d.yaml takes what is there now") != std::string::npos);
  const std::string taken = resumed("-b d.yaml --num_steps 14");
  CHECK(taken.find(note) == std::string::npos);
  CHECK(taken.find("lamp: green") != std::string::npos);
  CHECK(resumed("--num_steps 16").find(note) == std::string::npos);

  fs::remove(folder / "d.yaml");
  CHECK(resumed("--num_steps 18").find(note) == std::string::npos);
}

TEST_CASE("a callback's script that is gone at a resume is taken from the run's own copy") {
  const ScratchFolder folder;
  folder.write("mine.py", "print('{\"seen\": 3}')\n");
  folder.write("c.yaml", "eval_hook: {eval_callbacks: {mine: ./mine.py}}\n");
  run_well(folder, "stepop -n a -b CONFIG c.yaml -t --num_steps 4", kNoWarning);
  const std::string run = only_run(folder);
  const std::string copy = run + "/code/scripts/eval_hook/mine/mine.py";
  CHECK(read_bytes(folder.path(copy)) == read_bytes(folder.path("mine.py")));
  const std::string is_gone = folder.path("mine.py") + " is gone: the run's own copy is taken, ";
  CHECK(run_well(folder, "stepop -p " + run).out.find(is_gone) == std::string::npos);
  fs::remove(folder.path("mine.py"));
  const std::string resumed =
      run_well(folder, "stepop -p " + run + " -t --num_steps 6", kNoWarning).out;
  CHECK(resumed.find("script    " + is_gone + folder.path(copy)) != std::string::npos);
  // Also after the resume.
  const std::string metrics = read_bytes(folder.path(run) + "/train/metrics.jsonl");
  CHECK(metrics.find("\"validation/eval_op/mine/seen\"") !=
        metrics.rfind("\"validation/eval_op/mine/seen\""));
}

TEST_CASE("what is not UTF-8 is refused before there is a run: no checkpoint could hold it") {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& words, const std::string& message) {
    const CommandResult result =
        run_in(folder, "cp -r " STEPOP_SOURCE_DIR
                       "/configs/data . 2>/dev/null; bad=$(printf 'lat\\xe9'); "
                       "mkdir -p $bad; cp data/digits-t* $bad; stepop " +
                           fmt::format(fmt::runtime(words), kConfig));
    CHECK(result.exit_code == 2);
    CHECK(result.err == "stepop: " + message + "\n");
    CHECK(only_run(folder) == "");
  };
  refused("-n $bad -b {} -t", "-n: \"lat\xe9\" is not UTF-8 text");
  refused("-n a -b {} -t --extra/note $bad",
          "--extra/note lat\xe9: not UTF-8 text, which the config must be");
  refused("-n a -b {} -t --extra/$bad 1",
          "--extra/lat\xe9 1: not UTF-8 text, which the config must be");
  folder.write("c.yaml", "datasets: {train: {images: digits-train-images.idx.gz}}\n");
  refused("-n a -b {} $(mv c.yaml $bad; echo $bad/c.yaml) -t",
          "the config has text that is not UTF-8, which checkpoints and outputs cannot hold: "
          "images: \"" +
              fs::canonical(folder.path()).string() +
              "/lat\xe9/digits-train-images.idx.gz\"\n"
              "give that file or folder another name");
}

TEST_CASE("a resume with another length says from where the schedules go on") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b " STEPOP_SOURCE_DIR
                   "/configs/digits.yaml -t --num_epochs 2 --stop_at 10");
  const std::string run = only_run(folder);
  const auto longer = run_in(folder, "stepop -p " + run + " -t --num_epochs 4 --stop_at 12");
  CHECK(longer.exit_code == 0);
  CHECK(longer.err.find("warning: the training is 92 steps long in epochs of 23, and was planned "
                        "with 46 in epochs of 23: lengths in epochs and in parts of it follow\n  "
                        "optimizer/lr continues from 0.005827, and was 0.005328\n") !=
        std::string::npos);
  CHECK(run_in(folder, "stepop -p " + run + " -t --stop_at 14").err.find("was planned") ==
        std::string::npos);
}

}  // namespace resume_test
}  // namespace stepop
