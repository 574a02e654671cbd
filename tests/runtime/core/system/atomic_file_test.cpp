#include "runtime/core/system/atomic_file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/base/error.h"
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

TEST_CASE("two writers of one path do not disturb each other: the last commit wins") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  {
    AtomicFile first(path);
    first.write("first, long");
    AtomicFile second(path);
    second.write("second");
    CHECK(folder.names() == Names{"a.2.tmp", "a.tmp"});
    SUBCASE("the first commits first") {
      first.commit();
      CHECK(read_bytes(path) == "first, long");
      second.commit();
      CHECK(read_bytes(path) == "second");
    }
    SUBCASE("the second commits first") {
      second.commit();
      CHECK(read_bytes(path) == "second");
      first.commit();
      CHECK(read_bytes(path) == "first, long");
    }
    SUBCASE("the first gives up") {
      { const AtomicFile third(path); }
      second.commit();
      CHECK(read_bytes(path) == "second");
    }
  }
  CHECK(folder.names() == Names{"a"});
}

TEST_CASE("many threads that write one path and point one link leave a whole file and a link") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string content(static_cast<size_t>(1000 + 1000 * t), static_cast<char>('a' + t));
      for (int i = 0; i < 50; ++i) {
        try {
          AtomicFile file(path);
          file.write(content.substr(0, 500));
          file.write(content.substr(500));
          file.commit();
          link_into_place(content.substr(0, 1), folder / "link");
          const std::string found = read_bytes(path);
          const bool is_whole = found.size() % 1000 == 0 && !found.empty() &&
                                found == std::string(found.size(), found[0]);
          if (!is_whole) ++failures;
        } catch (const Error&) {
          ++failures;
        }
      }
    });
  }
  threads.clear();
  CHECK(failures == 0);
  CHECK(folder.names() == Names{"a", "link"});
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
  CHECK(tried == 7);  // open, write, fsync, close, rename; open and fsync of the folder
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

TEST_CASE("a finished file takes the place of the old one") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "old");
  rename_into_place(folder.write("a.part", "newer"), path);
  CHECK(std::filesystem::file_size(path) == 5);
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_CASE("a file that is not there or has no place to go is an error with the reason") {
  const ScratchFolder folder;
  const std::string path = folder.path("a");
  CHECK(message_of([&] { rename_into_place(path + ".part", path); }) ==
        "cannot open " + path + ".part: No such file or directory");
  folder.write("a.part", "new");
  std::filesystem::create_directories(path + "/b");
  CHECK(message_of([&] { rename_into_place(path + ".part", path); }) ==
        "cannot rename " + path + ".part to " + path + ": Is a directory");
  CHECK(std::filesystem::exists(path + ".part"));
}

TEST_CASE("a link is made, and then points elsewhere") {
  const ScratchFolder folder;
  const std::string path = folder / "latest";
  link_into_place("model-1", path);
  CHECK(std::filesystem::read_symlink(path) == "model-1");
  std::filesystem::create_symlink("left behind", path + ".tmp");
  link_into_place("model-2", path);
  CHECK(std::filesystem::read_symlink(path) == "model-2");
  CHECK(folder.names() == std::vector<std::string>{"latest"});
}

TEST_CASE("a link to a folder is replaced, not filled") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "model-1");
  link_into_place("model-1", folder / "latest");
  link_into_place("model-2", folder / "latest");
  CHECK(std::filesystem::read_symlink(folder / "latest") == "model-2");
  CHECK(std::filesystem::is_empty(folder / "model-1"));
}

TEST_CASE("a link that cannot be made is an error with its path, its target and the reason") {
  const ScratchFolder folder;
  const std::string path = folder / "none/latest";
  CHECK(message_of([&] { link_into_place("model-1", path); }) ==
        "cannot create the link " + path + ".tmp to model-1: No such file or directory");
  std::filesystem::create_directory(folder / "latest");
  CHECK(message_of([&] { link_into_place("model-1", folder / "latest"); }) ==
        "cannot rename " + folder.path("latest.tmp") + " to " + folder.path("latest") +
            ": Is a directory");
  CHECK(folder.names() == std::vector<std::string>{"latest"});
}

TEST_CASE("whichever call fails, a link is the old or the new one, and a second try succeeds") {
  const ScratchFolder folder;
  const std::string path = folder / "latest";
  int tried = 0;
  for (int number = 1;; ++number) {
    link_into_place("old", path);
    std::filesystem::create_symlink("left behind", path + ".tmp");
    std::string message;
    {
      FailingFiles files;
      files.fail(FileCall::kAny, number, EIO);
      message = message_of([&] { link_into_place("new", path); });
      if (!files.has_failed()) break;
    }
    ++tried;
    CAPTURE(number);
    const std::string found = std::filesystem::read_symlink(path);
    CHECK((found == "new" || (found == "old" && message.ends_with(": Input/output error"))));
    link_into_place("newer", path);
    CHECK(std::filesystem::read_symlink(path) == "newer");
    CHECK(folder.names() == std::vector<std::string>{"latest"});
  }
  CHECK(tried == 6);  // symlink, unlink, symlink, rename; open and fsync of the folder
}

TEST_CASE(
    "a finished file that cannot be renamed into place is still there, under one name or the "
    "other") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  for (int number = 1;; ++number) {
    write_bytes(path, "old");
    write_bytes(path + ".part", "new");
    {
      FailingFiles files;
      files.fail(FileCall::kAny, number, EIO);
      message_of([&] { rename_into_place(path + ".part", path); });
      if (!files.has_failed()) break;
    }
    CAPTURE(number);
    const bool is_renamed = read_bytes(path) == "new";
    CHECK((is_renamed || read_bytes(path + ".part") == "new"));
    if (!is_renamed) CHECK(read_bytes(path) == "old");
  }
}

}  // namespace atomic_file_test
}  // namespace stepop
