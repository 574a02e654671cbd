#include "runtime/core/system/find_program.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/scratch_folder.h"

namespace stepop {
namespace find_program_test {

TEST_CASE("a program is the first of its name on the PATH that can be run") {
  const ScratchFolder folder;
  for (const char* name : {"first", "second", "third/tool"}) {
    std::filesystem::create_directories(folder.path(name));
  }
  folder.write("first/tool", "a text");
  folder.write("second/tool", "a program");
  ::chmod(folder.path("second/tool").c_str(), 0700);
  const std::string before = std::getenv("PATH");
  ::setenv("PATH",
           (folder.path("none") + ":" + folder.path("first") + ":" + folder.path("third") + ":" +
            folder.path("second"))
               .c_str(),
           1);
  CHECK(find_program("tool") == folder.path("second/tool"));  // "third/tool" is a folder
  CHECK(find_program("other").empty());
  CHECK(find_program(folder.path("second/tool")) == folder.path("second/tool"));
  CHECK(find_program(folder.path("first/tool")).empty());
  ::setenv("PATH", before.c_str(), 1);
}

}  // namespace find_program_test
}  // namespace stepop
