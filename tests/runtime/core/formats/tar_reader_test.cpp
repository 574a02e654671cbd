#include "runtime/core/formats/tar_reader.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tar_file.h"

namespace stepop {
namespace tar_reader_test {

/// All members of an archive, `name=content` each; a link as `name->`.
std::vector<std::string> members(const std::string& path) {
  UnpackedInput input(std::make_unique<FileInput>(path));
  TarReader tar(input);
  std::vector<std::string> found;
  while (const auto member = tar.next()) {
    found.push_back(member->name + (member->is_link ? "->" : "=" + tar.content(1 << 20)));
  }
  return found;
}

std::vector<std::string> members_of(const std::string& bytes) {
  const ScratchFolder folder;
  return members(folder.write("a.tar", bytes));
}

TEST_CASE("archives of Python in each of its formats are read, long names and links included") {
  const ScratchFolder folder;
  const std::string deep = std::string(90, 'd') + "/" + std::string(80, 'n') + ".txt";
  const std::string long_name = std::string(150, 'x') + "/" + std::string(200, 'y') + ".txt";
  run_python(R"(
import io, sys, tarfile
for name, form in dict(ustar=tarfile.USTAR_FORMAT, gnu=tarfile.GNU_FORMAT, pax=tarfile.PAX_FORMAT).items():
    for mode, end in (("w", "tar"), ("w:gz", "tar.gz")):
        with tarfile.open(f"{sys.argv[1]}/{name}.{end}", mode, format=form) as tar:
            def add(path, content, kind=tarfile.REGTYPE, target=""):
                info = tarfile.TarInfo(path)
                info.size, info.type, info.linkname, info.mtime = len(content), kind, target, 1.5
                tar.addfile(info, io.BytesIO(content))
            add("folder", b"", tarfile.DIRTYPE)
            add("a.txt", b"first")
            add("empty.txt", b"")
            add(sys.argv[2], b"deep")
            if name != "ustar":
                add(sys.argv[3], b"long")
                add("\u00e4.txt", b"umlaut")
            add("link.txt", b"", tarfile.SYMTYPE, "a.txt")
            add("block.txt", b"b" * 1024)
)",
             {folder.path(), deep, long_name});
  std::vector<std::string> expected = {"a.txt=first", "empty.txt=", deep + "=deep", "link.txt->",
                                       "block.txt=" + std::string(1024, 'b')};
  CHECK(members(folder / "ustar.tar") == expected);
  CHECK(members(folder / "ustar.tar.gz") == expected);
  expected.insert(expected.begin() + 3, {long_name + "=long", "ä.txt=umlaut"});
  for (const char* name : {"gnu.tar", "gnu.tar.gz", "pax.tar", "pax.tar.gz"}) {
    CAPTURE(name);
    CHECK(members(folder / name) == expected);
  }
}

TEST_CASE("a reader begins anywhere at a member, and passes over what nobody asks for") {
  const ScratchFolder folder;
  const std::string path = folder.write(
      "a.tar", tar_member("a", std::string(700, 'a')) + tar_member("b", "bb") + tar_end());
  FileInput input(path);
  TarReader tar(input);
  CHECK(tar.next()->begin == 0);
  const auto second = tar.next();
  CHECK(second->begin == 1536);
  FileInput other(path);
  other.seek(second->begin);
  TarReader late(other, second->begin);
  CHECK(late.next()->begin == 1536);
  CHECK(late.content(100) == "bb");
  CHECK_FALSE(late.next());
}

TEST_CASE("archives that end too early, are damaged or sparse are refused with the reason") {
  const std::string good = tar_member("a", "content") + tar_member("b", "more");
  CHECK(message_of([&] { members_of(good); }) ==
        "the archive is cut short: it ends without the zeros that end one");
  CHECK(message_of([&] { members_of(good.substr(0, 1300)); }) ==
        "the archive is cut short: it ends in the middle of a header");
  CHECK(message_of([&] { members_of(good.substr(0, 515)); }) ==
        "the archive is cut short: it ends in the middle of a member");
  std::string flipped = good + tar_end();
  flipped[1030] = '!';
  CHECK(message_of([&] { members_of(flipped); }) ==
        "damaged at byte 1024: no header of a tar archive is there");
  CHECK(message_of([&] { members_of("PNG, or anything else" + std::string(600, 'x')); }) ==
        "damaged at byte 0: no header of a tar archive is there");
  CHECK(message_of([&] { members_of(tar_member("hole", "x", 'S') + tar_end()); }) ==
        "hole: a sparse file, which cannot be read here; pack it without tar's --sparse");
  const std::string pax = "27 GNU.sparse.realsize=900\n";
  CHECK(message_of([&] {
          members_of(tar_member("h", pax, 'x') + tar_member("h", "x") + tar_end());
        }) == "a sparse file, which cannot be read here; pack it without tar's --sparse");
  // What a header claims is not allocated.
  CHECK(message_of([&] { members_of(tar_header("big", uint64_t{1} << 32) + tar_end()); }) ==
        "it has 4.3 GB, and more than 1.0 MB are not read");
  CHECK(message_of([&] { members_of(tar_header("n", uint64_t{1} << 30, 'L') + tar_end()); }) ==
        "a name of 1.1 GB");
  CHECK(message_of([&] { members_of(tar_header("n", 5, 'Z') + tar_end()); }) ==
        "n: a member of the unknown type 90");
}

TEST_CASE("behind a damaged header the next one is found") {
  const ScratchFolder folder;
  std::string bytes =
      tar_member("a", "1") + tar_member("b", "2") + tar_member("c", "3") + tar_end();
  bytes[1024] ^= 1;
  FileInput input(folder.write("a.tar", bytes));
  TarReader tar(input);
  CHECK(tar.next()->name == "a");
  CHECK_THROWS_AS(tar.next(), TarDamage);
  CHECK(tar.find_header());
  const auto found = tar.next();
  CHECK(found->name == "c");
  CHECK(found->begin == 2048);
  CHECK(tar.content(9) == "3");
  CHECK_FALSE(tar.next());
}

TEST_CASE(
    "a mutated archive gives an Error or members that fit into it, in bounded time and memory") {
  const uint64_t seed = fuzz_seed();
  const uint64_t count = fuzz_count(1500);
  CAPTURE(seed);
  const ScratchFolder folder;
  const std::string whole =
      tar_member("././@LongLink", std::string(200, 'n') + '\0', 'L') + tar_member("n", "content") +
      tar_member("x", "20 path=some/a.png\n", 'x') + tar_member("p", "png") +
      tar_member("folder/", "", '5') + tar_member("b.txt", std::string(900, 'b')) + tar_end();
  ByteMutator mutator(
      seed, {"ustar", std::string(12, '7'), "\x80", std::string(512, '\0'), "L", "x", "S"},
      {"ustar"});
  FuzzWatch watch("tar", seed);
  uint64_t whole_reads = 0;
  for (uint64_t i = fuzz_first(); i < count; ++i) {
    CAPTURE(i);
    const std::string path = folder.write("a.tar", mutator.mutate(whole));
    watch.run(i, [&] {
      try {
        FileInput input(path);
        TarReader tar(input);
        for (int members = 0; members < 100; ++members) {
          try {
            const auto member = tar.next();
            if (!member) break;
            const std::string content = tar.content(1 << 30);
            REQUIRE(content.size() <= whole.size() + 600);
          } catch (const TarDamage& damage) {
            if (damage.is_cut() || !tar.find_header()) throw;
          }
        }
        ++whole_reads;
      } catch (const Error& error) {
        REQUIRE(std::string(error.what()).size() > 10);
      }
    });
  }
  CHECK(whole_reads > 0);
}

}  // namespace tar_reader_test
}  // namespace stepop
