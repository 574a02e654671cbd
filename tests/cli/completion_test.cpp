// `stepop completion`, run by the shell itself.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/cli/command.h"
#include "tests/places.h"

namespace stepop {
namespace completion_test {

/// What bash offers for the last of `words`, one a line, sorted.
std::string offered(const ScratchFolder& folder, const std::string& words) {
  const CommandResult result =
      run_in(folder, "export PATH='" STEPOP_BINARY_DIR
                     "':$PATH; unset -f stepop\n"
                     "eval \"$(stepop completion bash)\"\n"
                     "COMP_WORDS=(" +
                         words +
                         "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                         "_stepop; printf '%s\\n' \"${COMPREPLY[@]}\" | sort");
  CHECK(result.err == "");
  return result.out;
}

TEST_CASE("bash completes commands, flags, files, and the keys of the config") {
  const ScratchFolder folder;
  folder.write("co.yaml", "optimizer: {class: Adam, lr: 1}\nbatch_size: 4\nname: x\n");
  CHECK(offered(folder, "stepop co") == "co.yaml\ncompare\ncompletion\nconfig\n");
  CHECK(offered(folder, "stepop --pro") == "--processes\n--profile\n--project\n");
  CHECK(offered(folder, "stepop -t -l d") == "debug\n");
  CHECK(offered(folder, "stepop -b c") == "co.yaml\n");
  CHECK(offered(folder, "stepop -b co.yaml -t --opt") ==
        "--optimizer\n--optimizer/class\n--optimizer/lr\n");
  CHECK(offered(folder, "stepop -b co.yaml -t --na") == "--name\n--name\n");
  // Keys need no code, and no key of a config is a command of the shell.
  folder.write("code.yaml", "code: none.cpp\n'a$(touch ran)': 1\nbatch_size: 4\n");
  CHECK(offered(folder, "stepop -b code.yaml -t --ba") == "--base\n--batch_size\n--batch_size\n");
  CHECK_FALSE(std::filesystem::exists(folder.path("ran")));
  CHECK(run_in(folder, "stepop config --paths -b co.yaml").out ==
        "optimizer\noptimizer/class\noptimizer/lr\nbatch_size\nname\n");
  CHECK(run_in(folder, "stepop completion zsh").out.starts_with("autoload "));
  CHECK(run_in(folder, "stepop completion fish").err ==
        "stepop: stepop completion fish: expected bash or zsh\n");
}

}  // namespace completion_test
}  // namespace stepop
