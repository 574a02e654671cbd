#include "runtime/core/system/append_file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace append_file_test {

TEST_CASE("lines are appended to what is there, each in one write") {
  const ScratchFolder folder;
  const std::string path = folder.write("log", "before\n");
  const FailingFiles files;
  AppendFile file(path);
  file.append("one\ntwo\n");
  file.append("");
  file.append("three\n");
  file.sync();
  CHECK(read_bytes(path) == "before\none\ntwo\nthree\n");
  CHECK(files.count(FileCall::kWrite) == 2);
  CHECK(files.count(FileCall::kFsync) == 2);  // the file, and its name in the folder
  file.sync();
  CHECK(files.count(FileCall::kFsync) == 3);
}

TEST_CASE("a half last line is ended before the first new one") {
  const ScratchFolder folder;
  const std::string path = folder.write("log", "whole\nhal");
  AppendFile file(path);
  CHECK(read_bytes(path) == "whole\nhal");
  file.append("new\n");
  file.append("newer\n");
  CHECK(read_bytes(path) == "whole\nhal\nnew\nnewer\n");
}

TEST_CASE("two processes append to one file without harm to each other's lines") {
  const ScratchFolder folder;
  AppendFile file(folder / "log");
  AppendFile other(folder / "log");
  file.append("one\n");
  other.append("two\n");
  file.append("three\n");
  CHECK(read_bytes(folder / "log") == "one\ntwo\nthree\n");
}

TEST_CASE("a file that cannot be opened, written or flushed is an error with path and reason") {
  const ScratchFolder folder;
  CHECK(message_of([&] { AppendFile(folder / "none/log"); }) ==
        "cannot open " + folder.path("none/log") + ": No such file or directory");
  CHECK(message_of([&] { AppendFile{folder.path()}; }) ==
        "cannot open " + folder.path() + ": Is a directory");
  const std::string path = folder / "log";
  FailingFiles files;
  AppendFile file(path);
  files.fail(FileCall::kWrite, 1, EROFS);
  CHECK(message_of([&] { file.append("x\n"); }) ==
        "cannot write " + path + ": Read-only file system");
  files.fail(FileCall::kFsync, 1, EIO);
  CHECK(message_of([&] { file.sync(); }) == "cannot flush " + path + ": Input/output error");
  files.fail(FileCall::kFsync, files.count(FileCall::kFsync) + 2, EIO);
  CHECK(message_of([&] { file.sync(); }) ==
        "cannot flush the folder " + folder.path() + ": Input/output error");
}

TEST_CASE("what a full disk took of a line is taken back, and the next line may fit") {
  const ScratchFolder folder;
  const std::string path = folder.write("log", "before\n");
  FailingFiles files;
  AppendFile file(path);
  files.leave_room(8);
  CHECK(message_of([&] { file.append("a line that is too long\n"); }) ==
        "cannot write " + path + ": No space left on device");
  CHECK(read_bytes(path) == "before\n");
  files.mend();
  file.append("again\n");
  CHECK(read_bytes(path) == "before\nagain\n");
}

TEST_CASE("a half line that cannot be taken back is ended by the next one") {
  const ScratchFolder folder;
  const std::string path = folder.write("log", "before\n");
  FailingFiles files;
  AppendFile file(path);
  files.leave_room(3);
  files.fail(FileCall::kTruncate, 1, EIO);
  CHECK(message_of([&] { file.append("too long\n"); }) ==
        "cannot write " + path + ": No space left on device");
  CHECK(read_bytes(path) == "before\ntoo");
  files.mend();
  file.append("again\n");
  CHECK(read_bytes(path) == "before\ntoo\nagain\n");
}

TEST_CASE("a line that another process appended meanwhile is not taken back") {
  const ScratchFolder folder;
  const std::string path = folder / "log";

  /// Another process writes between two parts of ours.
  class Meddler : public FileCalls {
   public:
    explicit Meddler(std::string log) : log_(std::move(log)) {}
    ssize_t write(int file, const void* data, size_t size) override {
      if (++count_ == 1) {
        const ssize_t done = FileCalls::write(file, data, std::min<size_t>(size, 3));
        std::ofstream(log_, std::ios::app) << "theirs\n";
        return done;
      }
      errno = ENOSPC;
      return -1;
    }

   private:
    std::string log_;
    int count_ = 0;
  };
  Meddler meddler(path);
  const FileCallsOverride override(meddler);
  AppendFile file(path);
  CHECK(message_of([&] { file.append("ours\n"); }) ==
        "cannot write " + path + ": No space left on device");
  CHECK(read_bytes(path) == "ourtheirs\n");
}

TEST_CASE("interrupted and partial appends are continued") {
  const ScratchFolder folder;
  FailingFiles files;
  files.shorten_writes(4);
  files.fail(FileCall::kAny, 1, EINTR, 2);
  AppendFile file(folder / "log");
  file.append("a longer line\n");
  CHECK(read_bytes(folder / "log") == "a longer line\n");
}

TEST_CASE("whichever call fails, no whole line is lost, and later lines are whole") {
  const ScratchFolder folder;
  const std::string path = folder / "log";
  int tried = 0;
  for (int number = 1;; ++number) {
    write_bytes(path, "before\n");
    bool is_done = false;
    {
      FailingFiles files;
      files.shorten_writes(3);
      files.fail(FileCall::kAny, number, ENOSPC);
      const std::string message = message_of([&] {
        AppendFile file(path);
        file.append("new\n");
        is_done = true;
        file.sync();
      });
      if (!files.has_failed()) break;
      if (!is_done) CHECK(message.ends_with(path + ": No space left on device"));
    }
    ++tried;
    CAPTURE(number);
    CHECK(read_bytes(path) == (is_done ? "before\nnew\n" : "before\n"));
    AppendFile(path).append("next\n");
    CHECK(read_bytes(path) == (is_done ? "before\nnew\nnext\n" : "before\nnext\n"));
  }
  CHECK(tried == 6);  // open, two writes, fsync; open and fsync of the folder
}

TEST_CASE("a limit on the file's size is an error, not a death, once its signal is ignored") {
  const ScratchFolder folder;
  const std::string path = folder.write("log", "before\n");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10, 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    AppendFile file(path);
    const std::string message = message_of([&] { file.append("too long\n"); });
    _exit(message == "cannot write " + path + ": File too large" ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(read_bytes(path) == "before\n");
}

TEST_CASE("a file that is removed while it is written comes back with all its lines") {
  const ScratchFolder folder;
  const std::string path = folder.write("log", "before\n");
  AppendFile file(path);
  file.append("one\n");
  CHECK(file.mend() == "");
  std::filesystem::remove(path);
  file.append("two\n");
  CHECK(file.mend() ==
        path +
            " was removed while it was being written: it has been written again, with all its "
            "lines");
  file.append("three\n");
  file.sync();
  CHECK(read_bytes(path) == "before\none\ntwo\nthree\n");
  CHECK(file.mend() == "");
  folder.write("other", "other\n");
  std::filesystem::rename(folder / "other", path);
  CHECK(file.mend().find(" was replaced by another file") != std::string::npos);
  file.append("four\n");
  CHECK(read_bytes(path) == "other\nfour\n");
}

TEST_CASE("a symbolic link is not written through") {
  const ScratchFolder folder;
  folder.write("mine", "mine\n");
  std::filesystem::create_symlink(folder / "mine", folder / "log");
  CHECK(message_of([&] {
          AppendFile(folder / "log");
        }).find("it is a symbolic link, which may lead anywhere") != std::string::npos);
  CHECK(read_bytes(folder / "mine") == "mine\n");
}

}  // namespace append_file_test
}  // namespace stepop
