#include "runtime/core/system/mapped_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace mapped_file_test {

TEST_CASE("a mapped file has the bytes of the file, also when it is empty or was moved") {
  const ScratchFolder folder;
  const std::string bytes("a\0b\r\n\xff", 6);
  MappedFile file(folder.write("a", bytes));
  CHECK(file.bytes() == bytes);
  const MappedFile moved = std::move(file);
  CHECK(moved.bytes() == bytes);
  CHECK(moved.path() == folder.path("a"));
  CHECK(MappedFile(folder.write("empty", "")).bytes().empty());
}

TEST_CASE("what is no regular file is refused: a pipe would wait for who writes into it") {
  const ScratchFolder folder;
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto message = [](const std::string& path) {
    return message_of([&] { MappedFile{path}; });
  };
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    CHECK(message(path) ==
          "cannot read " + path + ": it is a pipe or a device, not a regular file");
  }
  CHECK(message(folder.path()) == "cannot read " + folder.path() + ": Is a directory");
  CHECK(message(folder.path("none")) ==
        "cannot read " + folder.path("none") + ": No such file or directory");
}

TEST_CASE("a file that was cut off since it was opened is reported before its bytes are read") {
  const ScratchFolder folder;
  const MappedFile file(folder.write("a", std::string(5000, 'x')));
  file.check_size();
  std::filesystem::resize_file(folder.path("a"), 100);
  CHECK(message_of([&] { file.check_size(); }) ==
        folder.path("a") + ": was cut off while it was in use: it had 5.0 kB and has 100 B");
}

}  // namespace mapped_file_test
}  // namespace stepop
