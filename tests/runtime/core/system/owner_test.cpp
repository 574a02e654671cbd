#include "runtime/core/system/owner.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace owner_test {

constexpr uid_t kNobody = 65534;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

TEST_CASE("a file that others can write, or that is theirs, may be somebody else's work") {
  const ScratchFolder folder;
  const std::string path = folder.write("x.so", "library");
  CHECK(foreign_reason(path) == "");
  CHECK(foreign_reason(folder / "none") == "");
  ::chmod(path.c_str(), 0666);
  CHECK(foreign_reason(path) == "others can write it (mode 666)");
  ::chmod(path.c_str(), 0644);
  if (::geteuid() != 0) return;  // only root can give files away
  REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0);
  CHECK(foreign_reason(path) == "it belongs to the user 65534");
}

TEST_CASE("a private folder is one's own, and closed to others") {
  const ScratchFolder folder;
  make_private_folder(folder / "a/new");
  CHECK(mode_of(folder / "a/new") == 0700);
  ::chmod((folder / "a/new").c_str(), 0777);
  make_private_folder(folder / "a/new");
  CHECK(mode_of(folder / "a/new") == 0700);
  if (::geteuid() != 0) return;
  REQUIRE(::chown((folder / "a/new").c_str(), kNobody, kNobody) == 0);
  CHECK(message_of([&] { make_private_folder(folder / "a/new"); }) ==
        (folder / "a/new") +
            ": it belongs to the user 65534, so what is in it may be somebody else's");
}

}  // namespace owner_test
}  // namespace stepop
