#include "runtime/files/reserve.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

int64_t bytes_on_disk(const std::string& path) {
  struct stat status = {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return 512 * int64_t{status.st_blocks};
}

TEST_CASE("the holes of a file get their place, and what it holds stays") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "begin");
  std::filesystem::resize_file(path, 1'000'000);
  CHECK(bytes_on_disk(path) < 100'000);
  reserve_space(path);
  CHECK(bytes_on_disk(path) >= 1'000'000);
  CHECK(read_bytes(path) == "begin" + std::string(999'995, '\0'));
  reserve_space(folder.write("empty", ""));
}

TEST_CASE("a disk without the room is told, one that cannot reserve is not") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", std::string(1'500'000, 'x'));
  FailingFiles files;
  files.fail(FileCall::kAllocate, 1, ENOSPC);
  CHECK(message_of([&] { reserve_space(path); }) ==
        "cannot reserve the 1.5 MB of " + path + ": No space left on device");
  files.fail(FileCall::kAllocate, 2, EOPNOTSUPP);
  reserve_space(path);
  files.fail(FileCall::kAllocate, 3, EINTR);
  reserve_space(path);
  CHECK(files.count(FileCall::kAllocate) == 4);
}

}  // namespace
}  // namespace stepop
