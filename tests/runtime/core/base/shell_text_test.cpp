#include "runtime/core/base/shell_text.h"

#include <doctest/doctest.h>

#include "tests/cli/command.h"

namespace stepop {
namespace shell_text_test {

TEST_CASE("a word of a command is quoted only where a shell needs it") {
  CHECK(shell_word("logs/2026-11-21T10-00-00_digits") == "logs/2026-11-21T10-00-00_digits");
  CHECK(shell_word("--lr=1e-3") == "--lr=1e-3");
  CHECK(shell_word("my runs/a") == "'my runs/a'");
  CHECK(shell_word("it's") == R"('it'\''s')");
  CHECK(shell_word("[64,32]") == "'[64,32]'");
  CHECK(shell_word("~/a") == "'~/a'");
  CHECK(shell_word("") == "''");
}

TEST_CASE("a shell reads a quoted word as it was") {
  const ScratchFolder folder;
  std::string all;
  for (char c = 1; c < 127; ++c) all += c;
  std::string line = "printf '%s|'";
  for (const std::string& word : {all, std::string("$HOME `id` \\ \"x\""), std::string("é ü")}) {
    line += " " + shell_word(word);
  }
  CHECK(run_in(folder, line).out == all + "|$HOME `id` \\ \"x\"|é ü|");
}

}  // namespace shell_text_test
}  // namespace stepop
