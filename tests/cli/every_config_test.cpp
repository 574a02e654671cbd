// Each command that reads a config reads every config that a training reads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/config/resolve.h"
#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"

namespace stepop {
namespace every_config_test {

namespace fs = std::filesystem;

void run(const ScratchFolder& folder, const std::string& line) {
  static const ScratchFolder cache;
  CAPTURE(line);
  const auto result =
      run_in(folder, "export OMP_NUM_THREADS=1 STEPOP_CACHE='" + cache.path() + "'\n" + line);
  CHECK_MESSAGE(result.exit_code == 0, result.err);
}

/// The names of the splits of a config; none for a file that is a part of others, and for data that
/// do not ship.
std::vector<std::string> splits_of(const std::string& path) {
  const Value config = resolve_config({path}, {});
  const Value* splits = config.find("datasets");
  std::vector<std::string> names;
  if (splits == nullptr || !splits->is_map() || config.find("iterator") == nullptr) return names;
  for (const auto& [name, split] : splits->as_map()) {
    for (const char* file : {"images", "path", "folder"}) {
      const Value* place = split.is_map() ? split.as_map().find(file) : nullptr;
      if (place == nullptr || !place->is_text()) continue;
      if (!fs::exists(fs::path(path).parent_path() / place->as_text())) return {};
    }
    names.push_back(name);
  }
  return names;
}

TEST_CASE("data and config read each config of the tree, and its training has no warning") {
  const ScratchFolder folder;
  int configs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(STEPOP_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string path = entry.path().string();
    const auto splits = splits_of(path);
    if (!splits.empty()) ++configs;
    for (const auto& split : splits) {
      run(folder, fmt::format("stepop data -b {} {} --examples 2", path, split));
    }
    if (splits.empty()) continue;
    run(folder, "stepop config -b " + path);
    const auto checked = run_in(folder, "stepop -b " + path + " -t --check");
    CHECK_MESSAGE(checked.err == "", path, ": ", checked.err);
  }
  CHECK(configs > 5);
}

TEST_CASE("each command before a training reads a config that fits something to itself") {
  const ScratchFolder folder;
  make_new(folder, "my_thing", "table");
  for (const char* command :
       {"data -b my_thing.yaml train", "data -b my_thing.yaml validation",
        "data -b my_thing.yaml --datasets/validation null", "config -b my_thing.yaml",
        "meta rows train -b my_thing.yaml", "tune -b my_thing.yaml --time 1s",
        "-b my_thing.yaml -t --check --graph"}) {
    run(folder, std::string("stepop ") + command);
  }
}

TEST_CASE("each command after a training reads a config that fits something to itself") {
  const ScratchFolder folder;
  make_new(folder, "my_thing", "table");
  run(folder, "stepop -n x -b my_thing.yaml -t --num_steps 2 --num_epochs null");
  const std::string name = only_run(folder);
  for (const char* command :
       {"data -p RUN train", "reproduce RUN", "-p RUN",
        "predict RUN --eval_hook/eval_op validation/eval_op --eval_functor null", "inspect RUN",
        "report RUN report.html"}) {
    std::string line = std::string("stepop ") + command;
    line.replace(line.find("RUN"), 3, name);
    run(folder, line);
  }
  folder.write("sweep.yaml",
               "base: [my_thing.yaml]\ngrid: {seed: [1, 2], num_steps: [1], num_epochs: [null]}\n");
  run(folder, "stepop sweep sweep.yaml");
}

TEST_CASE("data that no other split is fitted on are read") {
  const ScratchFolder folder;
  folder.write("a.csv", "x\n1.5\n2.5\n");
  folder.write("a.yaml",
               "datasets: {train: {class: Standardized, dataset: {class: Csv, path: a.csv}}}\n");
  for (const char* split : {"", " train"}) {
    const auto result = run_in(folder, std::string("stepop data -b a.yaml") + split);
    CHECK(result.err.empty());
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("a config that is a pipe has its paths from the current folder") {
  const ScratchFolder folder;
  folder.write("a.csv", "x\n1.5\n2.5\n");
  folder.write("base.yaml", "datasets: {train: {class: Csv, path: a.csv}}\n");
  for (const char* line :
       {"stepop data -b <(echo 'datasets: {train: {class: Csv, path: a.csv}}')",
        "stepop data -b <(echo 'include: base.yaml')",
        "echo 'datasets: {train: {class: Csv, path: a.csv}}' | stepop data -b /dev/stdin"}) {
    const auto result = run_in(folder, line);
    CAPTURE(line);
    CHECK(result.err.empty());
    CHECK(result.out.starts_with("datasets/train: Csv, 2 examples"));
  }
}

}  // namespace every_config_test
}  // namespace stepop
