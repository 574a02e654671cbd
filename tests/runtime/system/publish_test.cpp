#include "runtime/system/publish.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>

#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace publish_test {

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

TEST_CASE("a link is made, and then points elsewhere") {
  const ScratchFolder folder;
  const std::string path = folder / "latest";
  publish_symlink("model-1", path);
  CHECK(std::filesystem::read_symlink(path) == "model-1");
  std::filesystem::create_symlink("left behind", path + ".tmp");
  publish_symlink("model-2", path);
  CHECK(std::filesystem::read_symlink(path) == "model-2");
  CHECK(folder.names() == std::vector<std::string>{"latest"});
}

TEST_CASE("a link to a folder is replaced, not filled") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "model-1");
  publish_symlink("model-1", folder / "latest");
  publish_symlink("model-2", folder / "latest");
  CHECK(std::filesystem::read_symlink(folder / "latest") == "model-2");
  CHECK(std::filesystem::is_empty(folder / "model-1"));
}

TEST_CASE("a link that cannot be made is an error with its path, its target and the reason") {
  const ScratchFolder folder;
  const std::string path = folder / "none/latest";
  CHECK(message_of([&] { publish_symlink("model-1", path); }) ==
        "cannot create the link " + path + ".tmp to model-1: No such file or directory");
  std::filesystem::create_directory(folder / "latest");
  CHECK(message_of([&] { publish_symlink("model-1", folder / "latest"); }) ==
        "cannot rename " + folder.path("latest.tmp") + " to " + folder.path("latest") +
            ": Is a directory");
  CHECK(folder.names() == std::vector<std::string>{"latest"});
}

TEST_CASE("whichever call fails, a link is the old or the new one, and a second try succeeds") {
  const ScratchFolder folder;
  const std::string path = folder / "latest";
  int tried = 0;
  for (int number = 1;; ++number) {
    publish_symlink("old", path);
    std::filesystem::create_symlink("left behind", path + ".tmp");
    std::string message;
    {
      FailingFiles files;
      files.fail(FileCall::kAny, number, EIO);
      message = message_of([&] { publish_symlink("new", path); });
      if (!files.has_failed()) break;
    }
    ++tried;
    CAPTURE(number);
    const std::string found = std::filesystem::read_symlink(path);
    CHECK((found == "new" || (found == "old" && message.ends_with(": Input/output error"))));
    publish_symlink("newer", path);
    CHECK(std::filesystem::read_symlink(path) == "newer");
    CHECK(folder.names() == std::vector<std::string>{"latest"});
  }
  CHECK(tried == 7);  // symlink, unlink, symlink, rename; open, fsync, close of the folder
}

TEST_CASE("a finished file whose publishing fails is still there, under one name or the other") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  for (int number = 1;; ++number) {
    write_bytes(path, "old");
    write_bytes(path + ".part", "new");
    {
      FailingFiles files;
      files.fail(FileCall::kAny, number, EIO);
      message_of([&] { publish_file(path + ".part", path); });
      if (!files.has_failed()) break;
    }
    CAPTURE(number);
    const bool is_renamed = read_bytes(path) == "new";
    CHECK((is_renamed || read_bytes(path + ".part") == "new"));
    if (!is_renamed) CHECK(read_bytes(path) == "old");
  }
}

}  // namespace publish_test
}  // namespace stepop
