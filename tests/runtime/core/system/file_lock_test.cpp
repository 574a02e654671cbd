#include "runtime/core/system/file_lock.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <string>
#include <utility>

#include "runtime/core/base/error.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace file_lock_test {

TEST_CASE("a lock keeps out every other opening of the file until it is closed") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "");
  const auto open = [&] { return open_file(path, O_RDWR, "open " + path); };
  OpenFile first = open();
  const OpenFile second = open();
  CHECK(try_lock(first) == Locked::kYes);
  CHECK(try_lock(second) == Locked::kHeld);
  CHECK(try_lock(second, /*is_shared=*/true) == Locked::kHeld);
  first.close();
  CHECK(try_lock(second, /*is_shared=*/true) == Locked::kYes);
  CHECK(try_lock(open(), /*is_shared=*/true) == Locked::kYes);
  CHECK(try_lock(open()) == Locked::kHeld);
  CHECK(try_lock(OpenFile()) == Locked::kUnknown);
}

TEST_CASE("a held lock is waited for, and what the wait throws passes") {
  const ScratchFolder folder;
  const std::string path = folder / "lock";
  const FileLock held(path);
  int waits = 0;
  CHECK(message_of([&] {
          const FileLock other(path, [&] {
            if (++waits == 2) throw Error("enough");
          });
        }) == "enough");
  CHECK(waits == 2);
  CHECK(message_of([&] { const FileLock lock(folder / "none/lock"); }) ==
        "cannot make " + folder.path("none/lock") + ": No such file or directory");
}

TEST_CASE("an open file is closed once, and moves") {
  OpenFile file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = file.number();
  OpenFile other = std::move(file);
  CHECK(other.number() == number);
  CHECK(other.close() == 0);
  CHECK_FALSE(other);
  CHECK(other.close() == 0);
  CHECK(::fcntl(number, F_GETFD) == -1);
}

}  // namespace file_lock_test
}  // namespace stepop
