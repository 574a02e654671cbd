#include "runtime/core/programs/find_program.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "runtime/core/programs/python.h"
#include "tests/places.h"
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

TEST_CASE("another Python that is first on the PATH is named where stepop takes its own") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("bin"));
  folder.write("bin/python3", "a program");
  ::chmod(folder.path("bin/python3").c_str(), 0700);
  std::map<std::string, std::string> before;
  for (const char* name : {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "STEPOP_PYTHON"}) {
    if (const char* value = std::getenv(name)) before[name] = value;
    ::unsetenv(name);
  }
  ::setenv("PATH", (folder.path("bin") + ":/usr/bin:/bin").c_str(), 1);
  CHECK(python_choice().find(
            "and not " + folder.path("bin/python3") +
            ", which is first on the PATH: \"python\" of the dataset, VIRTUAL_ENV or "
            "STEPOP_PYTHON choose another") != std::string::npos);
  CHECK(python_choice("/usr/bin/python3").empty());
  ::setenv("PATH", "/usr/bin:/bin", 1);
  CHECK(python_choice().empty());
  ::setenv("PATH", STEPOP_SOURCE_DIR "/.venv/bin:/usr/bin", 1);
  CHECK(python_choice().empty());
  for (const auto& [name, value] : before) ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace find_program_test
}  // namespace stepop
