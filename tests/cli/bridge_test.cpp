// `integrations: {wandb: ...}`: a process beside the run, with the real package, offline.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/train/optim/update.h"
#include "tests/cli/digits_run.h"
#include "tests/python.h"

namespace stepop {
namespace bridge_test {
namespace fs = std::filesystem;

const std::string kOffline =
    "--integrations/wandb/active true --integrations/wandb/mode offline "
    "--integrations/wandb/wait 120 ";

/// What the only offline run in a run's folder has: each step's numbers, and the state.
nlohmann::json stored(const std::string& run) {
  return nlohmann::json::parse(run_python(R"py(
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.wandb_file import read
(path,) = Path(sys.argv[2]).glob("wandb/offline-run-*/*.wandb")
found = read(path)
print(json.dumps({"id": found.id, "state": found.summary["state"], "exit": found.exit_code,
                  "history": [[step, row] for step, row in found.history.items()]}))
)py",
                                          {STEPOP_SOURCE_DIR "/eval_out/python", run}));
}

/// The same of metrics.jsonl, each number also where several lines have a step.
nlohmann::json logged(const std::string& run) {
  std::map<int64_t, nlohmann::json> rows;
  for (const auto& text : lines_of(read_bytes(run + "/train/metrics.jsonl"))) {
    auto line = nlohmann::json::parse(text);
    const auto step = line["step"].get<int64_t>();
    line.erase("step");
    rows[step].update(line);
  }
  return rows;
}

TEST_CASE("a run that is killed and resumed is one run of W&B with the numbers that count") {
  const ScratchFolder folder;
  // The training dies; the process beside it sees that, sends what is there and ends.
  const auto killed = run_in(
      folder, std::string("export OMP_NUM_THREADS=1; ") + kUntil + STEPOP_BINARY_DIR +
                  "/stepop -n a -b '" + kConfig + "' -t --num_epochs 1000000 " + kOffline +
                  ">/dev/null & until_ok 'ls logs/*/train/checkpoints/model-46.safetensors'; "
                  "kill -9 $!; wait $! 2>/dev/null; "
                  "until_ok 'grep killed logs/*/wandb/bridge.json'; "
                  "until_ok 'flock -n logs/*/wandb/lock true'");
  CAPTURE(killed.err);
  REQUIRE(killed.exit_code == 0);
  const std::string run = folder.path(only_run(folder));
  CAPTURE(read_bytes(run + "/wandb/log.txt"));
  const auto first = stored(run);
  CHECK(first["state"] == "killed");
  CHECK(first["exit"] == 255);
  CHECK(first["history"] == logged(run));
  CHECK(first["history"].size() > 5);

  // Steps that were sent are logged again, by another learning rate.
  run_well(folder, "stepop -p logs/* -t -c 46 --num_epochs 4 --optimizer/lr 1e-3 " + kOffline);
  const auto second = stored(run);
  CHECK(second["id"] == first["id"]);
  CHECK(second["state"] == "done");
  CHECK(second["exit"] == 0);
  CHECK(second["history"] == logged(run));
  CHECK(second["history"].back()[0] == 92);
}

TEST_CASE("without its package a run trains on, with one warning that says how to send it later") {
  const ScratchFolder folder;
  const std::string reason = std::string(600, 'x') + " no module named wandb: pip install wandb";
  folder.write("python", "#!/bin/sh\necho '" + reason + "' >&2; exit 3\n");
  fs::permissions(folder.path("python"), fs::perms::owner_all);
  const auto result = run_in(folder, std::string("OMP_NUM_THREADS=1 stepop -n a -b '") + kConfig +
                                         "' -t --num_epochs 2 --integrations/wandb/active true "
                                         "--integrations/wandb/python ./python");
  CHECK(result.exit_code == 0);
  const std::string run = only_run(folder);
  const std::string warning =
      "integrations/wandb: its process ended with exit status 3: " + reason +
      "\n"
      "(that does not stop the training; see " +
      run + "/wandb/log.txt; all of the run can be sent later:  ";
  CHECK_MESSAGE(result.err.find(warning) != std::string::npos, result.err);
  CHECK(result.err.find(warning, result.err.find(warning) + 1) == std::string::npos);
  CHECK(read_bytes(folder.path(run + "/train/log.txt")).find(warning) != std::string::npos);
}

TEST_CASE("a Python that is not there is a warning as well; a wrong mode is an error") {
  const ScratchFolder folder;
  const std::string begin = std::string("OMP_NUM_THREADS=1 stepop -n a -b '") + kConfig +
                            "' -t --num_epochs 1 --integrations/mlflow/active true ";
  const auto result = run_in(folder, begin + "--integrations/mlflow/python /none");
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("integrations/mlflow: its process could not be started: cannot run /none: "
                        "No such file or directory\n") != std::string::npos);
  const auto wrong = run_in(folder, begin +
                                        "--integrations/wandb/active true "
                                        "--integrations/wandb/mode fast");
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.err.find("integrations/wandb/mode: expected online or offline, found \"fast\"") !=
        std::string::npos);
}

TEST_CASE("a trial run with -d and a --check start no process") {
  const ScratchFolder folder;
  run_well(folder, "stepop -n a -b CONFIG -t -d --integrations/wandb/active true");
  CHECK_FALSE(fs::exists(folder.path(only_run(folder, "logs/debug_runs")) + "/wandb"));
  run_well(folder, "stepop -n a -b CONFIG -t --check --integrations/wandb/active true >check");
  CHECK_FALSE(fs::exists(folder.path("wandb")));
}

}  // namespace bridge_test
}  // namespace stepop
