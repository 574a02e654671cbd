#include "runtime/train/run/git_tree.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "tests/scratch_folder.h"

namespace stepop {
namespace git_tree_test {

namespace fs = std::filesystem;

void shell(const ScratchFolder& folder, const std::string& line) {
  const std::string all = "cd '" + folder.path() +
                          "' && export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a "
                          "GIT_COMMITTER_EMAIL=a && { " +
                          line + "; } >/dev/null 2>&1";
  if (std::system(all.c_str()) != 0) throw std::runtime_error(line);
}

std::string top_of(const ScratchFolder& folder) { return fs::canonical(folder.path()).string(); }

TEST_CASE("a patch brings a commit to the tree as it was, binary files and deleted ones included") {
  const ScratchFolder folder;
  folder.write("a.txt", "one\ntwo\n");
  folder.write("b.bin", std::string("\0\1\2", 3));
  folder.write("gone.txt", "x\n");
  folder.write("sub/c.txt", "latin \xe9\n");
  shell(folder, "git init -q && git add . && git commit -qm first");
  const std::string top = top_of(folder);
  CHECK(git_top(folder.path("sub")) == top);

  const ScratchFolder out;
  const GitTree clean = read_git_tree(top, out.path("p.patch"), "");
  CHECK(clean.commit.size() == 40);
  CHECK_FALSE(clean.is_changed);
  CHECK(clean.patch == "");
  CHECK(out.names().empty());
  CHECK(has_commit(top, clean.commit));
  CHECK_FALSE(has_commit(top, std::string(40, 'a')));

  folder.write("a.txt", "one\n2\n");
  folder.write("b.bin", std::string("\0\3\2", 3));
  folder.write("sub/c.txt", "latin \xe9\xe8\n");
  folder.write("new.txt", "");
  folder.write("logs/run/log.txt", "");
  fs::remove(folder.path("gone.txt"));
  // Settings of the user's that would make it no patch for `git apply`.
  shell(folder,
        "git config diff.noprefix true; git config color.ui always; "
        "git config diff.external false; git config diff.relative true");
  const GitTree tree = read_git_tree(top, out.path("p.patch"), top + "/logs/run");
  CHECK(tree.failure == "");
  CHECK(tree.is_changed);
  CHECK(tree.patch == "p.patch");
  CHECK(tree.untracked == std::vector<std::string>{"new.txt"});
  CHECK(out.names() == std::vector<std::string>{"p.patch"});

  shell(folder, "git clone -q . copy && git -C copy apply '" + out.path("p.patch") + "'");
  for (const char* name : {"a.txt", "b.bin", "sub/c.txt"}) {
    CHECK(read_bytes(folder.path(std::string("copy/") + name)) == read_bytes(folder.path(name)));
  }
  CHECK_FALSE(fs::exists(folder.path("copy/gone.txt")));
}

TEST_CASE("a patch that is too large, and a repository that git cannot read, are said to be so") {
  const ScratchFolder folder;
  folder.write("a.txt", "");
  shell(folder, "git init -q");
  const ScratchFolder out;
  CHECK(read_git_tree(top_of(folder), out.path("p"), "").failure == "it has no commit yet");
  shell(folder, "git add . && git commit -qm first");
  folder.write("a.txt", std::string(5000, 'x') + "\n");
  const GitTree large = read_git_tree(top_of(folder), out.path("p"), "", {}, 1000);
  CHECK(large.failure == "the patch has more than 1.0 kB");
  CHECK(large.is_changed);
  CHECK(large.patch == "");
  CHECK(out.names().empty());

  folder.write(".git/HEAD", "nonsense");
  const std::string failure = read_git_tree(top_of(folder), out.path("p"), "").failure;
  CHECK(failure.find("git repository") != std::string::npos);
}

}  // namespace git_tree_test
}  // namespace stepop
