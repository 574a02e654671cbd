#include "runtime/core/system/read_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace read_file_test {

TEST_CASE("a file is read as a whole, of whatever size and whatever it holds") {
  const ScratchFolder folder;
  for (const size_t size : {0, 1, 65535, 65536, 65537, 300000}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
    CHECK(read_file(folder.write("a", bytes)) == bytes);
  }
  // Its size is 0, as of all files of /proc.
  CHECK(read_file("/proc/self/status").starts_with("Name:"));
}

TEST_CASE("a file that cannot be read is an error with its path and the reason") {
  const ScratchFolder folder;
  CHECK(message_of([&] { read_file(folder / "none"); }) ==
        "cannot read " + folder.path("none") + ": No such file or directory");
  CHECK(message_of([&] { read_file(folder.path()); }) ==
        "cannot read " + folder.path() + ": Is a directory");
  CHECK_FALSE(try_read_file(folder / "none"));
  CHECK(try_read_file(folder.write("a", "x")) == "x");
}

TEST_CASE("a file of more bytes than are asked for is refused before it is in memory") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", std::string(1001, 'x'));
  CHECK(read_file(path, 1001).size() == 1001);
  CHECK(message_of([&] { read_file(path, 1000); }) ==
        "cannot read " + path + ": it has more than 1.0 kB, the most that is read of such a file");
  std::filesystem::resize_file(path, 1ULL << 40);  // a hole
  CHECK_FALSE(try_read_file(path, 1 << 20));
  // One whose size nobody knows.
  CHECK(message_of([&] { read_file("/dev/zero", 100'000); }) ==
        "cannot read /dev/zero: it has more than 100.0 kB, the most that is read of such a file");
}

}  // namespace read_file_test
}  // namespace stepop
