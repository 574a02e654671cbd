// `stepop reproduce RUN`: its commands are really run, and what is not as it was is said.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"
#include "tests/same_state.h"

namespace stepop {
namespace reproduce_test {

namespace fs = std::filesystem;

/// The metrics of a run without what the clock and the machine say.
std::vector<nlohmann::json> metrics_of(const std::string& run) {
  std::vector<nlohmann::json> lines;
  for (const auto& line : lines_of(read_bytes(run + "/train/metrics.jsonl"))) {
    nlohmann::json json = nlohmann::json::parse(line);
    for (const char* key :
         {"time", "runtime/examples_per_second", "runtime/data_wait", "runtime/process_mb"}) {
      json.erase(key);
    }
    lines.push_back(json);
  }
  return lines;
}

std::string run_again(const ScratchFolder& folder) { return only_run(folder, "again/logs"); }

TEST_CASE("the commands of a run that was changed in mid-run give its metrics bit for bit") {
  const ScratchFolder folder;
  run_well(folder,
           "stepop -n a -b CONFIG -t --num_steps 40 --log_freq 4 --ckpt_freq 10 --stop_at 13");
  const std::string run = only_run(folder);
  run_well(folder, "stepop -p " + run + " -t --stop_at 30");
  // What came after step 20 is made again, with another rate.
  run_well(folder, "stepop -p " + run + " -t -c 20 --stop_at null --optimizer/lr 1e-3");
  run_well(folder, "stepop -p " + run + " -c 40");

  const std::string script =
      run_well(folder, "mkdir again; stepop reproduce " + run + " | tee again/script").out;
  CAPTURE(script);
  CHECK(contains(script, "# Nothing that it depends on is known to differ: the bits are the same"));
  CHECK(contains(script, "# it was resumed with the same config at 20"));
  CHECK(contains(script, "--stop_at 20\n"));
  CHECK(contains(script, " OMP_NUM_THREADS=1"));
  run_well(folder, "cd again && bash script >out");
  const std::string again = run_again(folder);
  CHECK(metrics_of(folder.path(again)) == metrics_of(folder.path(run)));
  CHECK(metrics_of(folder.path(run)).size() > 5);
  const std::string checkpoint = "/train/checkpoints/model-40.safetensors";
  CHECK(differences(load_checkpoint(folder.path(run) + checkpoint).tensors,
                    load_checkpoint(folder.path(again) + checkpoint).tensors) == "");
  const auto evaluated = [&](const std::string& root) {
    const std::string name = files_below(folder.path(root) + "/configs").front();
    const std::string time = name.substr(5, 19);
    return read_bytes(folder.path(root) + "/eval/" + time + "_a/40/scalars.json");
  };
  CHECK(evaluated(run) != "");
  CHECK(evaluated(again) == evaluated(run));
}

TEST_CASE("changes that were not committed, untracked files and changed data are had or said") {
  const ScratchFolder folder;
  const std::string data = STEPOP_SOURCE_DIR "/configs/data/digits-";
  for (const char* name : {"train-images", "train-labels", "test-images", "test-labels"}) {
    fs::create_directories(folder.path("project/data"));
    fs::copy_file(data + name + ".idx.gz", folder.path(std::string("project/data/") + name));
  }
  folder.write("project/digits.yaml",
               "include: [" STEPOP_SOURCE_DIR
               "/tests/data/digits.yaml]\n"
               "datasets:\n"
               "  train: {images: data/train-images, labels: data/train-labels}\n"
               "  validation: {images: data/test-images, labels: data/test-labels}\n");
  folder.write("project/notes.txt", "first\n");
  const std::string git =
      "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; ";
  run_well(folder, git + "cd project && git init -q && git add *.* && git commit -qm first");
  folder.write("project/notes.txt", "second\n");
  run_well(folder,
           "cd project && stepop -n a -b digits.yaml -t --num_steps 3 --log_freq 1 "
           "--data_checksums content");
  const std::string root = folder.path(only_run(folder, "project/logs"));
  // A training that came to its end is continued; its patch is the same and is kept once.
  run_well(folder, "cd project && stepop -p logs/* -t --num_steps 5");
  CHECK(run_well(folder, "ls " + root + "/configs | grep -c patch").out == "1\n");

  const std::string script =
      run_well(folder, "mkdir again; stepop reproduce " + root + " | tee again/script").out;
  CAPTURE(script);
  CHECK(contains(script, "had files that git does not know, which are not kept: data/\n"));
  run_well(folder, "cd again && bash script >out");
  CHECK(read_bytes(folder.path("again/source/notes.txt")) == "second\n");
  CHECK(metrics_of(folder.path(run_again(folder))) == metrics_of(root));

  // Another size; the same size and another content; gone.
  const std::string images = folder.path("project/data/train-images");
  std::string bytes = read_bytes(images);
  bytes.back() = static_cast<char>(bytes.back() + 1);
  write_bytes(images, bytes);
  write_bytes(folder.path("project/data/test-images"), "short");
  fs::remove(folder.path("project/data/test-labels"));
  fs::remove_all(folder.path("project/.git"));
  run_well(folder, "cd project && git init -q");
  const std::string later = run_well(folder, "stepop reproduce " + root).out;
  CAPTURE(later);
  CHECK(contains(
      later, "# - datasets/train/images: " + images + " has another content, of the same size\n"));
  CHECK(contains(later, "# - datasets/validation/images: " +
                            folder.path("project/data/test-images") + " has 5 bytes, it had "));
  CHECK(contains(later, "# - datasets/validation/labels: " +
                            folder.path("project/data/test-labels") + " is gone\n"));
  CHECK(contains(later, " is not in " + fs::canonical(folder.path("project")).string() + "\n"));
  CHECK(contains(later, "# git clone "));
  const auto json = nlohmann::json::parse(run_well(folder, "stepop reproduce --json " + root).out);
  CHECK(json["problems"].size() == 5);
  CHECK(json["parts"][1]["lines"].back().get<std::string>().find(" -n a -b ") != std::string::npos);
}

TEST_CASE("a run that began with weights of another, and was killed, is made again to its step") {
  const ScratchFolder folder;
  run_well(folder, "mkdir first; cd first; stepop -n a -b CONFIG -t --num_steps 2");
  const std::string first = folder.path(only_run(folder, "first/logs"));
  run_well(folder, STEPOP_BINARY_DIR "/stepop -n b -p " + first +
                       " -r -t --num_steps 1000000 --max_time 1h --log_freq 1 --ckpt_freq 5 "
                       "--eval_hook/freq 1000000 >out 2>err & " +
                       std::string(kUntil) +
                       "until_ok 'ls logs/*/train/checkpoints/model-10.*'; kill -9 $!; wait $! "
                       "2>/dev/null; true");
  const std::string run = only_run(folder);
  const std::string script =
      run_well(folder, "mkdir again; stepop reproduce " + run + " | tee again/script").out;
  CAPTURE(script);
  CHECK(contains(script, "# the run was killed after step "));
  CHECK(contains(script, "/train/checkpoints/model-2.safetensors -r "));
  CHECK(contains(script, " --max_time null --stop_at "));
  run_well(folder, "cd again && bash script >out");
  const auto before = metrics_of(folder.path(run));
  auto again = metrics_of(folder.path(run_again(folder)));
  REQUIRE(again.size() >= before.size());
  again.resize(before.size());
  CHECK(again == before);

  fs::remove_all(first);
  CHECK(contains(run_well(folder, "stepop reproduce " + run).out,
                 "/train/checkpoints/model-2.safetensors, from which it began, is gone\n"));
}

TEST_CASE("the user's own code is the run's copy, whatever became of the original") {
  const ScratchFolder folder;
  write_source(folder, "// a comment\n");
  CHECK(run_with_cache(folder, "stepop -n a -b one.yaml -t").exit_code == 0);
  folder.write("one.cpp", "#error broken\n");
  const std::string run = only_run(folder);
  const std::string script =
      run_well(folder, "mkdir again; stepop reproduce " + run + " | tee again/script").out;
  CAPTURE(script);
  CHECK(contains(script, " --code '[" + folder.path(run) + "/code/20"));
  CHECK_FALSE(contains(script, "compiler of the user's own code"));
  CHECK(run_with_cache(folder, "cd again && bash script >out").exit_code == 0);
  CHECK(metrics_of(folder.path(run_again(folder))) == metrics_of(folder.path(run)));
}

TEST_CASE("another compiler of the user's own code than that of the run is told") {
  const ScratchFolder folder;
  write_source(folder, "");
  folder.write("one.cpp", "int one = 1;\n");
  folder.write("mine.sh",
               "#!/bin/sh\n[ \"$*\" = --version ] && exec echo mine 1.2\nexec c++ \"$@\"\n");
  const std::string train = "chmod +x mine.sh; PATH=$PWD/bin:$PATH stepop -b one.yaml -t -n ";
  // The cache remembers the compiler.
  for (const std::string name : {"a", "b"}) {
    const auto result = run_with_cache(folder, "mkdir -p bin; ln -sf ../mine.sh bin/clang++-25; " +
                                                   train + name + " --logs " + name);
    CHECK_MESSAGE(result.exit_code == 0, result.err);
    const std::string run = only_run(folder, name);
    CHECK(contains(run_in(folder, "cat " + run + "/configs/train_*.json").out,
                   "\"code_compiler\": \"" + folder.path("bin/clang++-25") + " mine 1.2\""));
    const std::string text = run_well(folder, "STEPOP_CXX=c++ stepop reproduce " + run).out;
    CHECK(contains(text, "# - compiler of the user's own code: it was " +
                             folder.path("bin/clang++-25") + " mine 1.2, here it is c++ "));
  }
}

TEST_CASE("of a run without records there is what its configs and its log say") {
  const ScratchFolder folder;
  folder.write("run/configs/train_2026-11-21T10-00-00.yaml", "lr: 1\nmax_time: 1h\n");
  folder.write("run/configs/train_2026-11-21T11-00-00.yaml", "lr: 1\nmax_time: 1h\n");
  folder.write("run/configs/train_2026-11-21T12-00-00.yaml", "lr: 2\n");
  folder.write("run/train/log.txt",
               "2026-11-21 10:00:00 command   stepop -n run -b a.yaml -t\n"
               "2026-11-21 10:00:00 git       main a1b2c3d, with changes\n"
               "2026-11-21 10:30:00 command   stepop -p logs/run\n"
               "2026-11-21 11:00:00 command   stepop -p logs/run -t\n"
               "2026-11-21 11:00:00 resuming at step 900 of 2,000 (epoch 3)\n"
               "2026-11-21 12:00:00 command   stepop -p logs/run -t --lr 2\n"
               "2026-11-21 12:00:00 resuming at step 1,200 of 2,000 (epoch 3)\n");
  const std::string script = run_well(folder, "stepop reproduce run").out;
  CAPTURE(script);
  CHECK(
      contains(script,
               "# - there is no record of the start at 2026-11-21T10-00-00, which an older version "
               "made: its environment, libraries, data files and changes that were not "
               "committed are not known\n"));
  CHECK(contains(script,
                 "# 2026-11-21T10-00-00: stepop -n run -b a.yaml -t\n"
                 "# git: main a1b2c3d, with changes\n"
                 "# it was resumed with the same config at 2026-11-21T11-00-00: one training has "
                 "the same bits\n"));
  CHECK(contains(script,
                 "/run/configs/train_2026-11-21T10-00-00.yaml -t --max_time null --stop_at "
                 "1200\n"));
  CHECK(contains(script, "-p \"$run\" -b " + folder.path("run/configs/train_2026-11-21T12-00-00")));
}

TEST_CASE("nothing in a run's files becomes a command of the script") {
  const ScratchFolder folder;
  const std::string hostile = "a\n touch PWN $(touch PWN)\n#'`touch PWN`\r\ttouch PWN\n";
  const std::string name = "run" + hostile.substr(0, hostile.size() - 1);
  // A commit may be named by a reference, which may hold what a shell runs.
  const std::string git =
      "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; ";
  const std::string reference = "$(touch${IFS}PWN)";
  run_well(folder, git + "git init -q tree && cd tree && git commit -q --allow-empty -m first && " +
                       "git branch '" + reference + "'");
  const auto record = [&](const std::string& tree, const std::string& commit) {
    return nlohmann::json{
        {"kind", "training"},
        {"time", "2026-11-21T10-00-00"},
        {"folder", hostile},
        {"host", hostile},
        {"program", folder.path("tree") + "/" + hostile},
        {"command", hostile},
        {"checkpoint", hostile},
        {"environment", {{"A" + hostile, "1"}, {"OMP_" + hostile, "1"}, {"OMP_X", hostile}}},
        {"git", {{{"folder", tree}, {"commit", commit}, {"patch", hostile}}}}};
  };
  const std::string config = "/configs/train_2026-11-21T10-00-00";
  for (const auto& [tree, commit] : std::vector<std::pair<std::string, std::string>>{
           {hostile, hostile}, {folder.path("tree"), reference}}) {
    folder.write(name + config + ".yaml", "lr: 1\n");
    folder.write(name + config + ".json", record(tree, commit).dump());
    folder.write(name + "/train/log.txt", "");
    run_well(folder, "stepop reproduce 'run'* >script");
    const std::string script = read_bytes(folder.path("script"));
    CAPTURE(script);
    CHECK(contains(script, "export OMP_X="));
    CHECK_FALSE(contains(script, "export A"));
    CHECK(contains(script, "git -C source checkout"));
    // Each line alone too: a line that fails must not hide what comes after it.
    run_in(folder, "rm -rf source; sed -i '/^set -e$/d' script; bash script >out 2>&1");
    CHECK_FALSE(fs::exists(folder.path("PWN")));
    CHECK_FALSE(fs::exists(folder.path("source/PWN")));
  }
}

TEST_CASE("reproduce takes the folder of a run alone") {
  const ScratchFolder folder;
  CHECK(run_in(folder, "stepop reproduce nowhere").err ==
        "stepop: stepop reproduce: nowhere: no such folder; give the folder of a run, "
        "logs/<time>_<name>\n");
  CHECK(run_in(folder, "stepop reproduce . --lr 3").exit_code == 2);
}

TEST_CASE("the saved config of a run shows the defaults that were in force") {
  const WholeRun& run = whole_run();
  const std::string saved =
      read_bytes(run.root + "/configs/" + files_below(run.root + "/configs").back());
  for (const std::string line :
       {"  # betas: [0.9, 0.999]  # default\n", "# num_threads: 1  # default\n",
        "# log_ops: [train/log_op, validation/log_op]  # default\n",
        "  # freq: \"1e\"  # default\n", "# telemetry:\n#   active: true  # default\n"}) {
    CAPTURE(line);
    CHECK(contains(saved, line));
  }
}

}  // namespace reproduce_test
}  // namespace stepop
