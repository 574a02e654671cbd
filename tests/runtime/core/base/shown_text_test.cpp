#include "runtime/core/base/shown_text.h"

#include <doctest/doctest.h>

#include "runtime/core/base/shell_text.h"
#include "tests/cli/command.h"

namespace stepop {
namespace shown_text_test {

TEST_CASE("control characters, and those that turn writing round, are escaped, all else stays") {
  CHECK(shown_text("a\tb\nc") == "a\tb\nc");
  CHECK(shown_text("\x1b]0;T\a\r\x7f") == R"(\x1b]0;T\x07\x0d\x7f)");
  CHECK(shown_text(std::string_view("\0x", 2)) == R"(\x00x)");
  CHECK(shown_text("gnp.\u202eexe \u2066\u200f\u061c") == R"(gnp.\u202eexe \u2066\u200f\u061c)");
  CHECK(shown_text("\u0085\u009b31m") == R"(\x85\x9b31m)");  // C1: a terminal takes them as well
  CHECK(shown_text("\u00e4\u20ac\U0001f600 \u05d0\u200b") == "\u00e4\u20ac\U0001f600 \u05d0\u200b");
  CHECK(shown_text("\xff\xc3") == "\xff\xc3");  // no UTF-8
  CHECK(shown_in_line("a\tb\n") == R"(a\x09b\x0a)");
  CHECK(shown_json("\"\u202e\"\n") == "\"\\\\u202e\"\n");
}

TEST_CASE("a command with control characters shows none, and means the same to bash") {
  const std::string word = "a\x1b[31m'\\\u202eb";
  CHECK(shell_word(word) == R"($'a\x1b[31m\x27\x5c\xe2\x80\xaeb')");
  const ScratchFolder folder;
  CHECK(run_in(folder, "printf %s " + shell_word(word)).out == word);
}

TEST_CASE("what a message names reaches the terminal without its control characters") {
  const ScratchFolder folder;
  const CommandResult result = run_in(folder, "stepop -b $'\\x1b]0;T\\x07.yaml' -t");
  CHECK(result.exit_code == 2);
  CHECK(result.err == "stepop: cannot read \\x1b]0;T\\x07.yaml: No such file or directory\n");
}

}  // namespace shown_text_test
}  // namespace stepop
