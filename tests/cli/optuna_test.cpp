// configs/optuna_search.py, with Optuna itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace optuna_test {

/// Defines `search(study)` of the script, in a folder, with trials that this test chooses.
constexpr const char* kBegin = R"py(
import json, os, sys, runpy
source, build, folder = sys.argv[1:4]
os.chdir(folder)
os.environ["OMP_NUM_THREADS"] = "1"
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
script = runpy.run_path(source + "/configs/optuna_search.py")

def suggest(trial):
    lr = trial.suggest_float("optimizer/lr", 1e-3, 1e-2, log=True)
    # The first trial is over soon; the others would take minutes.
    return {"optimizer/lr": lr, "num_epochs": 2 if trial.number == 0 else 100000, "eval_hook/freq": "1e",
            "model/hidden": [16, 16]}

class PruneAllButFirst(optuna.pruners.BasePruner):
    def prune(self, study, trial):
        return trial.number > 0 and len(trial.intermediate_values) >= 2

def make_study():
    backend = optuna.storages.journal.JournalFileBackend("study.log")
    return optuna.create_study(study_name="s", storage=optuna.storages.JournalStorage(backend),
                               load_if_exists=True, direction="maximize",
                               sampler=optuna.samplers.RandomSampler(seed=1), pruner=PruneAllButFirst())

def make_search(study):
    return script["Search"](study, "logs/optuna/s", [source + "/configs/digits.yaml"],
                            "validation/eval_op/accuracy/accuracy", build + "/stepop", suggest, poll=0.05)

def process_state(name):
    run = make_search(make_study()).run_of(name)
    return json.load(open(run + "/train/process.json"))["state"]
)py";

std::string run_search(const ScratchFolder& folder, const std::string& rest) {
  return run_python(kBegin + rest, {STEPOP_SOURCE_DIR, STEPOP_BINARY_DIR, folder.path()});
}

TEST_CASE(
    "Optuna gets the numbers of a run as it trains, and a pruned trial is stopped and saved") {
  const ScratchFolder folder;
  const auto found = nlohmann::json::parse(run_search(folder, R"py(
study = make_study()
make_search(study).run(2)
print(json.dumps({"states": [t.state.name for t in study.trials],
                  "values": [t.intermediate_values for t in study.trials], "best": study.best_value,
                  "processes": [process_state("trial_0000"), process_state("trial_0001")]}))
)py"));
  CAPTURE(found.dump());
  CHECK(found["states"] == nlohmann::json({"COMPLETE", "PRUNED"}));
  CHECK(found["processes"] == nlohmann::json({"done", "stopped"}));
  // An evaluation after each of two epochs of 23 steps.
  REQUIRE(found["values"][0].size() == 2);
  CHECK(found["values"][0].contains("23"));
  CHECK(found["best"] ==
        std::max(found["values"][0]["23"].get<double>(), found["values"][0]["46"].get<double>()));
  CHECK(found["values"][1].size() >= 2);
}

TEST_CASE("a trial of a search that was killed goes on with its run") {
  const ScratchFolder folder;
  const auto found = nlohmann::json::parse(run_search(folder, R"py(
study = make_study()
trial = study.ask()
search = make_search(study)
trial.set_user_attr("run", "trial_0000")
process = search.start("trial_0000", dict(suggest(trial)))   # of a search that ends here
process.wait()
study = make_study()
study.pruner = optuna.pruners.NopPruner()
make_search(study).run(1)
run = search.run_of("trial_0000")
print(json.dumps({"states": [t.state.name for t in study.trials], "runs": len(os.listdir("logs/optuna/s")),
                  "lr": [t.params["optimizer/lr"] for t in study.trials],
                  "log": open(run + "/train/log.txt").read()}))
)py"));
  CHECK(found["states"] == nlohmann::json({"FAIL", "COMPLETE"}));
  CHECK(found["runs"] == 2);  // a run and its output
  CHECK(found["lr"][0] == found["lr"][1]);
  CHECK(found["log"].get<std::string>().find("resuming at step 46 of 46") != std::string::npos);
}

}  // namespace optuna_test
}  // namespace stepop
