#include "runtime/system/atomic_file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/error.h"
#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace atomic_file_test {

using Names = std::vector<std::string>;

TEST_CASE("a file appears with its whole content, and only by the commit") {
  const ScratchFolder folder;
  const std::string path = folder / "weights";
  {
    AtomicFile file(path);
    file.write("first, ");
    file.write("");
    file.write(std::string("second\0third", 12));
    CHECK(folder.names() == Names{"weights.tmp"});
    file.commit();
  }
  CHECK(folder.names() == Names{"weights"});
  CHECK(read_bytes(path) == std::string("first, second\0third", 19));
}

TEST_CASE("a new file has the permissions that the user's mask gives it") {
  const ScratchFolder folder;
  const mode_t mask = umask(027);
  write_file_atomically(folder / "a", "x");
  umask(mask);
  struct stat status = {};
  REQUIRE(stat((folder / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("without a commit the old file stays and the temporary one goes") {
  const ScratchFolder folder;
  write_bytes(folder / "a", "old");
  { AtomicFile(folder / "a").write("new"); }
  CHECK(folder.names() == Names{"a"});
  CHECK(read_bytes(folder / "a") == "old");
}

TEST_CASE("what a killed process left behind is overwritten") {
  const ScratchFolder folder;
  write_bytes(folder / "a", "old");
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder / "a");
    file.write("a long text that was never finished");
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(folder.names() == Names{"a", "a.tmp"});
  CHECK(read_bytes(folder / "a") == "old");

  write_file_atomically(folder / "a", "new");
  CHECK(folder.names() == Names{"a"});
  CHECK(read_bytes(folder / "a") == "new");
}

TEST_CASE("a folder that cannot be written is named with the reason") {
  const ScratchFolder folder;
  write_bytes(folder / "file", "");
  const std::string below = folder / "file/weights";
  CHECK_THROWS_WITH_AS(AtomicFile{below},
                       ("cannot create " + below + ".tmp: Not a directory").c_str(), Error);
  const std::string missing = folder / "none/weights";
  CHECK_THROWS_WITH_AS(AtomicFile{missing},
                       ("cannot create " + missing + ".tmp: No such file or directory").c_str(),
                       Error);
}

TEST_CASE("a name that a folder has cannot be replaced") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "a");
  const std::string path = folder / "a";
  const std::string message = "cannot rename " + path + ".tmp to " + path + ": Is a directory";
  CHECK_THROWS_WITH_AS(write_file_atomically(path, "x"), message.c_str(), Error);
  CHECK(folder.names() == Names{"a"});
}

TEST_CASE("every call that fails is reported, and the old file stays") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  const std::string temporary = path + ".tmp";
  write_bytes(path, "old");
  FailingFiles files;
  std::string message;
  SUBCASE("a folder that became read-only") {
    files.fail(FileCall::kOpen, 1, EROFS);
    message = "cannot create " + temporary + ": Read-only file system";
  }
  SUBCASE("a full disk") {
    files.leave_room(2);
    message = "cannot write " + temporary + ": No space left on device";
  }
  SUBCASE("a disk that cannot flush") {
    files.fail(FileCall::kFsync, 1, EIO);
    message = "cannot flush " + temporary + ": Input/output error";
  }
  SUBCASE("a quota that is found at the end") {
    files.fail(FileCall::kClose, 1, EDQUOT);
    message = "cannot close " + temporary + ": Disk quota exceeded";
  }
  SUBCASE("a folder that became read-only in the end") {
    files.fail(FileCall::kRename, 1, EROFS);
    message = "cannot rename " + temporary + " to " + path + ": Read-only file system";
  }
  CHECK(message_of([&] { write_file_atomically(path, "new"); }) == message);
  CHECK(folder.names() == Names{"a"});
  CHECK(read_bytes(path) == "old");
}

TEST_CASE("a folder that cannot be flushed is reported after the file is in place") {
  const ScratchFolder folder;
  FailingFiles files;
  files.fail(FileCall::kFsync, 2, EIO);
  CHECK(message_of([&] { write_file_atomically(folder / "a", "new"); }) ==
        "cannot flush the folder " + folder.path() + ": Input/output error");
  CHECK(read_bytes(folder / "a") == "new");
}

TEST_CASE("whichever call fails, a file is the old or the new one, and a second try succeeds") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  int tried = 0;
  for (int number = 1;; ++number) {
    write_bytes(path, "old");
    std::string message;
    {
      FailingFiles files;
      files.fail(FileCall::kAny, number, ENOSPC);
      message = message_of([&] { write_file_atomically(path, "new"); });
      if (!files.has_failed()) break;
    }
    ++tried;
    CAPTURE(number);
    const std::string found = read_bytes(path);
    CHECK((found == "new" || (found == "old" && message.ends_with(": No space left on device"))));
    write_file_atomically(path, "newer");
    CHECK(folder.names() == Names{"a"});
    CHECK(read_bytes(path) == "newer");
  }
  CHECK(tried == 8);  // open, write, fsync, close, rename; open, fsync, close of the folder
}

TEST_CASE("interrupted and partial writes are continued") {
  const ScratchFolder folder;
  FailingFiles files;
  files.shorten_writes(3);
  files.fail(FileCall::kOpen, 1, EINTR, 2);
  AtomicFile file(folder / "a");
  files.fail(FileCall::kWrite, 2, EINTR);
  file.write("eleven byte");
  files.fail(FileCall::kFsync, 1, EINTR);
  file.commit();
  CHECK(read_bytes(folder / "a") == "eleven byte");
  CHECK(files.count(FileCall::kWrite) == 5);
}

}  // namespace atomic_file_test
}  // namespace stepop
