#include "runtime/train/run/run_files.h"

#include <algorithm>
#include <string>

namespace stepop {
namespace {

constexpr RunFile kRunFiles[] = {
    {"configs/train_<time>.yaml", "the resolved config of each start", "one more"},
    {"configs/train_<time>.json", "what else it was made of, for `stepop reproduce`", "one more"},
    {"configs/train_<time>.patch", "what was not committed to git; `.2.patch`: a second repository",
     "one more"},
    {"configs/eval_<time>", "the same of an evaluation alone", "stays"},
    {"configs/change_<time>.yaml", "a change while it trained", "stays"},
    {"code/<time>/", "your own code, as each start trained with it", "one more"},
    {"code/scripts/", "scripts of callbacks, for a resume where they are gone", "stays"},
    {"train/log.txt", "what the console said, of all starts; never cut", "continues"},
    {"train/metrics.jsonl", "what trainings logged, for programs: one line an event",
     "later steps move"},
    {"train/tensorboard/", "event files, if asked for", "one more"},
    {"train/profile_<time>.json", "of a start with `--profile`: a trace for Chrome", "stays"},
    {"train/rank-<r>.log", "why a process other than rank 0 failed", "continues"},
    {"train/process.json", "who trains the run, or did last", "is written anew"},
    {"train/checkpoints/model-<step>.safetensors", "a checkpoint", "later steps move"},
    {"train/checkpoints/latest.safetensors", "a link to one of them", "is written anew"},
    {"train/checkpoints/best.safetensors", "another one", "is written anew"},
    {"train/superseded/<time>/",
     "what moved, of steps after the one at which a start resumed; may be removed", "one more"},
    {"train/non_finite/<step>/", "the step in which NaN or infinity appeared", "later steps move"},
    {"train/change.yaml", "a change that you ask for; `.refused` if it cannot be", "is taken"},
    {"train/<split>/<op>/", "`<name>_<step>.png` and other files of logs", "later steps move"},
    {"eval/<time>_<name>/process.json", "who evaluates without a training, or did", "stays"},
    {"eval/<time>_<name>/<step>/",
     "`outputs.h5`, `scalars.json`, and a folder for each evaluation with a name",
     "unfinished ones of later steps move"},
    {"eval/reached.json", "the checkpoint up to which `eval_forever` has come", "stays"},
    {"wandb/", "what was sent there, if asked for", "continues"},
    {"mlflow/", "the same", "continues"},
    {"report.html", "of `stepop report`", "stays"},
};

}  // namespace

std::span<const RunFile> run_files() { return kRunFiles; }

bool is_folder_of_split(std::string_view folder) {
  const std::string place = "train/" + std::string(folder) + "/";
  return std::ranges::none_of(kRunFiles,
                              [&](const RunFile& row) { return row.path.starts_with(place); });
}

}  // namespace stepop
