#include "runtime/core/system/reserve.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"
#include "tests/small_disk.h"

namespace stepop {
namespace reserve_test {

int64_t bytes_on_disk(const std::string& path) {
  struct stat status = {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return 512 * int64_t{status.st_blocks};
}

TEST_CASE("holes get their place, what is written stays, and the file gets longer") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "begin");
  std::filesystem::resize_file(path, 1'000'000);
  CHECK(bytes_on_disk(path) < 100'000);
  reserve_space(path, 0, 1'000'000);
  CHECK(bytes_on_disk(path) >= 1'000'000);
  reserve_space(path, 1'000'000, 2'000'000);
  CHECK(bytes_on_disk(path) >= 2'000'000);
  CHECK(read_bytes(path) == "begin" + std::string(1'999'995, '\0'));
  release_space(path, 5);
  CHECK(read_bytes(path) == "begin");
  release_space(path, 10);
  reserve_space(path, 3, 3);
  CHECK(read_bytes(path) == "begin");
}

TEST_CASE("a file system that cannot reserve gets zeros at the end") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "begin");
  FailingFiles files;
  files.fail_from(FileCall::kAllocate, 1, EOPNOTSUPP);
  reserve_space(path, 0, 3);
  CHECK(read_bytes(path) == "begin");
  reserve_space(path, 5, 3'000'000);
  CHECK(read_bytes(path) == "begin" + std::string(2'999'995, '\0'));
}

TEST_CASE("a disk without the room is told, and the file is as it was") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "begin");
  FailingFiles files;
  SUBCASE("that can reserve") { files.fail(FileCall::kAllocate, 1, ENOSPC); }
  SUBCASE("that cannot reserve") {
    files.fail(FileCall::kAllocate, 1, EOPNOTSUPP);
    files.leave_room(1000);
  }
  CHECK(message_of([&] { reserve_space(path, 5, 1'500'005); }) ==
        "cannot reserve 1.5 MB in " + path + ": No space left on device");
  CHECK(read_bytes(path) == "begin");
}

TEST_CASE("a disk that is really full as well") {
  on_small_disk(64 << 10, [](SmallDisk& disk) {
    const std::string path = disk / "a";
    write_bytes(path, "begin");
    CHECK(message_of([&] { reserve_space(path, 5, 100'000); }) ==
          "cannot reserve 100.0 kB in " + path + ": No space left on device");
    CHECK(read_bytes(path) == "begin");
    CHECK(bytes_on_disk(path) == 4096);
    reserve_space(path, 5, 50'000);
    disk.fill();
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    CHECK(file.write(std::string(50'000, 'x').data(), 50'000).flush().good());
  });
}

TEST_CASE("an interrupted call is repeated; another failure is an error") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "begin");
  FailingFiles files;
  files.fail(FileCall::kAllocate, 1, EINTR);
  reserve_space(path, 0, 10);
  CHECK(files.count(FileCall::kAllocate) == 2);
  files.fail(FileCall::kTruncate, 1, EIO);
  CHECK(message_of([&] { release_space(path, 5); }) ==
        "cannot cut " + path + " to 5 bytes: Input/output error");
}

}  // namespace reserve_test
}  // namespace stepop
