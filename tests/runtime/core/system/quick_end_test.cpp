#include "runtime/core/system/quick_end.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/scratch_folder.h"

namespace stepop {
namespace quick_end_test {

struct AtEnd {
  ~AtEnd() { std::cout << "of later; "; }
};

/// What a process writes that is made in `with` LD_PRELOAD, and then ends by exit(7).
std::string written(const char* with) {
  const ScratchFolder folder;
  const std::string path = folder.path("out");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::unsetenv("LD_PRELOAD");
    if (with != nullptr) ::setenv("LD_PRELOAD", with, 1);
    ::dup2(::open(path.c_str(), O_CREAT | O_WRONLY, 0600), STDOUT_FILENO);
    std::atexit([] { std::cout << "of earlier; "; });
    end_quickly();
    static const AtEnd later;
    std::cout << "buffered; ";
    std::exit(7);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  return read_bytes(path);
}

TEST_CASE(
    "a process ends with its status and its texts, after the destructors of what came later") {
  CHECK(written(nullptr) == "buffered; of later; ");
  CHECK(written("") == "buffered; of later; ");
}

TEST_CASE("a process with a library of a profiler ends as ever") {
  CHECK(written("profiler.so") == "buffered; of later; of earlier; ");
}

}  // namespace quick_end_test
}  // namespace stepop
