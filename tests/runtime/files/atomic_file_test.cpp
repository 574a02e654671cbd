#include "runtime/files/atomic_file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/error.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

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
  FileCalls calls = FileCalls::system();
  std::string message;

  SUBCASE("a full disk") {
    calls.write = [](int, const void*, size_t) -> ssize_t {
      errno = ENOSPC;
      return -1;
    };
    message = "cannot write " + temporary + ": No space left on device";
  }
  SUBCASE("a disk that cannot flush") {
    calls.fsync = [](int) {
      errno = EIO;
      return -1;
    };
    message = "cannot flush " + temporary + ": Input/output error";
  }
  SUBCASE("a quota that is found at the end") {
    calls.close = [](int file) {
      close(file);
      errno = EDQUOT;
      return -1;
    };
    message = "cannot close " + temporary + ": Disk quota exceeded";
  }
  SUBCASE("a folder that became read-only") {
    calls.rename = [](const char*, const char*) {
      errno = EROFS;
      return -1;
    };
    message = "cannot rename " + temporary + " to " + path + ": Read-only file system";
  }
  {
    AtomicFile file(path, calls);
    CHECK_THROWS_WITH_AS(
        [&] {
          file.write("new");
          file.commit();
        }(),
        message.c_str(), Error);
  }
  CHECK(folder.names() == Names{"a"});
  CHECK(read_bytes(path) == "old");
}

TEST_CASE("interrupted and partial writes are continued") {
  const ScratchFolder folder;
  FileCalls calls = FileCalls::system();
  calls.write = [](int file, const void* data, size_t size) -> ssize_t {
    static int count = 0;
    if (++count % 2 == 1) {
      errno = EINTR;
      return -1;
    }
    return write(file, data, size > 3 ? 3 : size);
  };
  AtomicFile file(folder / "a", calls);
  file.write("eleven byte");
  file.commit();
  CHECK(read_bytes(folder / "a") == "eleven byte");
}

TEST_CASE("a folder that cannot be flushed is reported after the file is in place") {
  const ScratchFolder folder;
  FileCalls calls = FileCalls::system();
  calls.fsync = [](int file) {
    struct stat status = {};
    if (fstat(file, &status) == 0 && !S_ISDIR(status.st_mode)) return 0;
    errno = EIO;
    return -1;
  };
  const std::string path = folder / "a";
  AtomicFile file(path, calls);
  file.write("new");
  const std::string root = std::filesystem::path(path).parent_path().string();
  CHECK_THROWS_WITH_AS(file.commit(),
                       ("cannot flush the folder " + root + ": Input/output error").c_str(), Error);
  CHECK(read_bytes(path) == "new");
}

}  // namespace
}  // namespace stepop
