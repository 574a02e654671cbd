// `stepop meta FOLDER [SPLIT] -b base.yaml`.
#include <doctest/doctest.h>

#include "tests/cli/command.h"

namespace stepop {
namespace meta_command_test {

TEST_CASE("the examples of a config's dataset are written as a folder, which a dataset reads") {
  const ScratchFolder folder;
  folder.write("people.yaml",
               "datasets:\n  train: {class: Figures, size: 32, examples: 3, keypoints: true}\n"
               "  validation: {class: Figures, size: 32, examples: 2, offset: 9}\n");
  const auto made = run_in(folder, "stepop meta people validation -b people.yaml");
  CHECK(made.exit_code == 0);
  CHECK(made.out == "people: 2 examples; {class: Meta, path: people} reads them\n");
  folder.write("read.yaml", "datasets: {train: {class: Meta, path: people}}\n");
  const auto read = run_in(folder, "stepop data -b read.yaml");
  CHECK_MESSAGE(read.exit_code == 0, read.err);
  CHECK(read.out.find("target_") != std::string::npos);
  const auto again = run_in(folder, "stepop meta people -b people.yaml");
  CHECK(again.exit_code == 1);
  CHECK(again.err.find("people is there already; nothing was changed") != std::string::npos);
  const auto missing = run_in(folder, "stepop meta other test -b people.yaml");
  CHECK(missing.exit_code == 2);
  CHECK(missing.err == "stepop: stepop meta: the config has no datasets/test\n");
}

}  // namespace meta_command_test
}  // namespace stepop
