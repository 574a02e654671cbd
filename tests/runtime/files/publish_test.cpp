#include "runtime/files/publish.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

TEST_CASE("a finished file takes the place of the old one") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "old");
  publish_file(folder.write("a.part", "newer"), path);
  CHECK(std::filesystem::file_size(path) == 5);
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_CASE("a file that is not there or has no place to go is an error with the reason") {
  const ScratchFolder folder;
  const std::string path = folder.path("a");
  CHECK(message_of([&] { publish_file(path + ".part", path); }) ==
        "cannot open " + path + ".part: No such file or directory");
  folder.write("a.part", "new");
  std::filesystem::create_directories(path + "/b");
  CHECK(message_of([&] { publish_file(path + ".part", path); }) ==
        "cannot rename " + path + ".part to " + path + ": Is a directory");
  CHECK(std::filesystem::exists(path + ".part"));
}

}  // namespace
}  // namespace stepop
