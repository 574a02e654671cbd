#include "runtime/tools/code/code_copy.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "runtime/core/base/error.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace code_copy_test {

TEST_CASE("a copy is found by the place of the original, and knows what changed") {
  const ScratchFolder folder;
  folder.write("src/a.cpp", "a");
  folder.write("src/parts/h.h", "h");
  CodeCopy(folder / "run").save({folder / "src/a.cpp", folder / "src/parts/h.h"}, "1");
  const CodeCopy copy(folder / "run");
  CHECK(copy.find(folder / "src/a.cpp") == folder / "run/code/1/a.cpp");
  CHECK(copy.find(folder / "src/b.cpp") == folder / "src/b.cpp");
  CHECK(copy.differences().empty());
  folder.write("src/a.cpp", "new");
  std::filesystem::remove(folder / "src/parts/h.h");
  CHECK(copy.differences() == std::vector<std::string>{"a.cpp changed", "h.h is gone"});
}

TEST_CASE("a file that a resume adds leaves the copies of the others where they are found") {
  const ScratchFolder folder;
  folder.write("src/a.cpp", "a as it was");
  folder.write("elsewhere/b.cpp", "b");
  CodeCopy(folder / "run").save({folder / "src/a.cpp"}, "1");
  folder.write("src/a.cpp", "a as it is now");
  const CodeCopy first(folder / "run");
  first.save({first.find(folder / "src/a.cpp"), folder / "elsewhere/b.cpp"}, "2");
  const CodeCopy second(folder / "run");
  const std::string copied = second.find(folder / "src/a.cpp");
  CHECK(copied == folder / "run/code/2/src/a.cpp");
  CHECK(read_bytes(copied) == "a as it was");
  CHECK(second.find(folder / "elsewhere/b.cpp") == folder / "run/code/2/elsewhere/b.cpp");
  CHECK(second.differences() == std::vector<std::string>{"a.cpp changed"});

  SUBCASE("the copies alone make no new one") {
    second.save({copied, second.find(folder / "elsewhere/b.cpp")}, "3");
    CHECK_FALSE(std::filesystem::exists(folder / "run/code/3"));
  }
}

TEST_CASE("a header in two versions, of the copy and of code that is new, is refused") {
  const ScratchFolder folder;
  folder.write("src/a.cpp", "a");
  folder.write("src/h.h", "old");
  CodeCopy(folder / "run").save({folder / "src/a.cpp", folder / "src/h.h"}, "1");
  folder.write("src/h.h", "new");
  folder.write("src/b.cpp", "b");
  const CodeCopy copy(folder / "run");
  CHECK_THROWS_WITH_AS(
      copy.save({copy.find(folder / "src/a.cpp"), copy.find(folder / "src/h.h"),
                 folder / "src/b.cpp", folder / "src/h.h"},
                "2"),
      "h.h changed since the run's own copy of it was made, and code that is new here includes it "
      "as it is now: --current-code takes all files as they are now",
      UsageError);
  CHECK_FALSE(std::filesystem::exists(folder / "run/code/2"));
}

}  // namespace code_copy_test
}  // namespace stepop
