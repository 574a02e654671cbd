#include "runtime/train/run/run_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>

#include "runtime/core/system/read_file.h"
#include "tests/run_file_rows.h"

namespace stepop {
namespace run_files_test {

const std::string kTrain = "train/";

TEST_CASE("the page of runs has the files that a run may have") {
  std::string rows = "| file | what it is | at a resume |\n|---|---|---|\n";
  for (const RunFile& file : run_files()) {
    rows += fmt::format("| `{}` | {} | {} |\n", file.path, file.about, file.at_resume);
  }
  const std::string page = read_file(STEPOP_SOURCE_DIR "/runtime/train/run/README.md");
  CHECK_MESSAGE(page.find("\n" + rows + "\n") != std::string::npos, rows);
}

TEST_CASE("a file of a run is found by its path, a stranger's is not") {
  const auto row = [](const std::string& path) {
    const RunFile* found = find_run_file(path);
    return found == nullptr ? "" : std::string(found->path);
  };
  CHECK(row("train/metrics.jsonl") == "train/metrics.jsonl");
  CHECK(row("configs/train_2026-11-21T10-00-00.yaml") == "configs/train_<time>.yaml");
  CHECK(row("configs/eval_2026-11-21T10-00-00.json") == "configs/eval_<time>");
  CHECK(row("code/2026-11-21T10-00-00/mine/a.cpp") == "code/<time>/");
  CHECK(row("train/validation/log_op/input_0000100.png") == "train/<split>/<op>/");
  CHECK(row("eval/2026-11-21T10-00-00_a/100/outputs.h5") == "eval/<time>_<name>/<step>/");
  CHECK(row("eval/2026-11-21T10-00-00_a/process.json") == "eval/<time>_<name>/process.json");
  CHECK(row("notes.txt") == "");
  CHECK(row("train/metrics.jsonl.old") == "");
  CHECK(row("configs/mine.yaml") == "");
}

TEST_CASE("the folders of splits are those below train that nothing else is about") {
  CHECK(is_folder_of_split("train"));
  CHECK(is_folder_of_split("validation"));
  for (const char* folder : {"checkpoints", "superseded", "non_finite", "tensorboard"}) {
    CAPTURE(folder);
    CHECK_FALSE(is_folder_of_split(folder));
  }
}

TEST_CASE("what follows a run in Python knows the same folders") {
  std::set<std::string> folders;
  for (const RunFile& file : run_files()) {
    const std::string path(file.path);
    const size_t end = path.find('/', kTrain.size());
    if (!path.starts_with(kTrain) || end == std::string::npos) continue;
    const std::string folder = path.substr(kTrain.size(), end - kTrain.size());
    if (folder.find('<') == std::string::npos) folders.insert("\"" + folder + "\"");
  }
  const std::string script = read_file(STEPOP_SOURCE_DIR "/eval_out/python/stepop/eval/follow.py");
  CHECK(script.find(fmt::format("\nNO_LOGS = ({})\n", fmt::join(folders, ", "))) !=
        std::string::npos);
}

}  // namespace run_files_test
}  // namespace stepop
