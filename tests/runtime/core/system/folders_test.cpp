#include "runtime/core/system/folders.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/core/system/atomic_file.h"
#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace fs = std::filesystem;
namespace folders_test {

using Names = std::vector<std::string>;

TEST_CASE("a folder is made with those above it, once") {
  const ScratchFolder folder;
  make_folders(folder / "a/b/c");
  CHECK(fs::is_directory(folder / "a/b/c"));
  const FailingFiles files;
  make_folders(folder / "a/b/c");
  make_folders(folder / "a/b/c//");
  make_folders("");
  make_folders("/");
  CHECK(files.count() == 0);
}

TEST_CASE("a relative folder is made where the process is") {
  const ScratchFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  make_folders("x/y/");
  fs::current_path(before);
  CHECK(fs::is_directory(folder / "x/y"));
}

TEST_CASE("a folder that cannot be made is an error with its path and the reason") {
  const ScratchFolder folder;
  folder.write("file", "");
  CHECK(message_of([&] { make_folders(folder / "file"); }) ==
        "cannot make the folder " + folder.path("file") + ": a file of that name is there");
  CHECK(message_of([&] { make_folders(folder / "file/a"); }) ==
        "cannot make the folder " + folder.path("file/a") + ": Not a directory");
  FailingFiles files;
  files.fail(FileCall::kMkdir, 2, ENOSPC);  // the first one finds no folder above it
  CHECK(message_of([&] { make_folders(folder / "a/b"); }) ==
        "cannot make the folder " + folder.path("a") + ": No space left on device");
}

TEST_CASE("whichever call fails, a second try makes the folders") {
  const ScratchFolder folder;
  int tried = 0;
  for (int number = 1;; ++number) {
    {
      FailingFiles files;
      files.fail(FileCall::kAny, number, EIO);
      message_of([&] { make_folders(folder / "a/b"); });
      if (!files.has_failed()) break;
    }
    ++tried;
    make_folders(folder / "a/b");
    CHECK(fs::is_directory(folder / "a/b"));
    fs::remove_all(folder / "a");
  }
  CHECK(tried == 7);  // three of mkdir, and open and fsync of two folders
}

TEST_CASE("what killed processes left behind is swept, at any depth, and nothing else") {
  const ScratchFolder folder;
  for (const char* name : {"model-7.safetensors.tmp", "train/a/b.png.tmp", "train/metrics.jsonl",
                           "eval/outputs.h5.part", "tmp", "not.tmp.txt"}) {
    folder.write(name, "x");
  }
  fs::create_directories(folder / "folder.tmp/inside");
  fs::create_symlink("model-7", folder / "latest.tmp");
  const ScratchFolder other;
  other.write("theirs.tmp", "x");
  fs::create_directory_symlink(other.path(), folder / "link");

  CHECK(sweep_temporaries(folder.path()) ==
        Names{"latest.tmp", "model-7.safetensors.tmp", "train/a/b.png.tmp"});
  CHECK(fs::exists(folder / "folder.tmp/inside"));
  CHECK(fs::exists(folder / "eval/outputs.h5.part"));
  CHECK(fs::exists(folder / "train/metrics.jsonl"));
  CHECK(fs::exists(other / "theirs.tmp"));
  CHECK(sweep_temporaries(folder.path()).empty());
}

TEST_CASE("a file that is being written is not swept") {
  const ScratchFolder folder;
  AtomicFile file(folder / "weights");
  file.write("x");
  CHECK(sweep_temporaries(folder.path()).empty());
  file.commit();
  CHECK(folder.names() == Names{"weights"});
}

TEST_CASE("what cannot be swept is passed over, and so is a folder that is not there") {
  const ScratchFolder folder;
  folder.write("a.tmp", "x");
  folder.write("b.tmp", "x");
  {
    FailingFiles files;
    files.fail(FileCall::kUnlink, 1, EROFS);
    CHECK(sweep_temporaries(folder.path()).size() == 1);
  }
  CHECK(sweep_temporaries(folder.path()).size() == 1);
  CHECK(sweep_temporaries(folder / "none").empty());
}

}  // namespace folders_test
}  // namespace stepop
