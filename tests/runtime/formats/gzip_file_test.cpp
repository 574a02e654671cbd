#include "runtime/formats/gzip_file.h"

#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace gzip_file_test {

/// Python: gzip.compress(b"hello, stepop", mtime=0)
const std::string kPacked(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\xd7\x51\x28\x2e\x49\x2d\xc8\x2f"
    "\x00\x00\x0d\xe4\x53\xf3\x0d\x00\x00\x00",
    33);

TEST_CASE("a plain file is read as it is") {
  const ScratchFolder folder;
  const std::string content("a\0b\r\n\xff", 6);
  CHECK(read_plain_or_gzip(folder.write("x", content)) == content);
  CHECK(read_plain_or_gzip(folder.write("empty", "")).empty());
  const std::string large(300'000, 'x');
  CHECK(read_plain_or_gzip(folder.write("large", large)) == large);
}

TEST_CASE("a gzip file is unpacked whatever its name is") {
  const ScratchFolder folder;
  CHECK(read_plain_or_gzip(folder.write("x.txt", kPacked)) == "hello, stepop");
}

TEST_CASE("several gzip members and zeros behind them are one file") {
  CHECK(unpack_gzip(kPacked + kPacked, "x") == "hello, stepophello, stepop");
  CHECK(unpack_gzip(kPacked + std::string(512, '\0'), "x") == "hello, stepop");
}

TEST_CASE("a gzip file that is cut short anywhere is reported with its size") {
  CHECK(message_of([] { unpack_gzip(kPacked.substr(0, 20), "a.gz"); }) ==
        "a.gz: the gzip data is cut short: the file ends after 20 bytes, which hold 9; copy or "
        "download it again");
  for (size_t size = 2; size < kPacked.size(); ++size) {
    CAPTURE(size);
    const std::string message = message_of([&] { unpack_gzip(kPacked.substr(0, size), "a.gz"); });
    CHECK(message.find("a.gz: the gzip data is cut short") == 0);
  }
}

TEST_CASE("damaged gzip data is reported with zlib's reason") {
  std::string damaged = kPacked;
  damaged[27] = 'x';
  CHECK(message_of([&] { unpack_gzip(damaged, "a.gz"); }) ==
        "a.gz: the gzip data is corrupt (incorrect data check); copy or download it again");
  CHECK(message_of([&] { unpack_gzip(kPacked + "rest", "a.gz"); }) ==
        "a.gz: 4 bytes that are no gzip follow the gzip data");
  // No byte of the data or of its check sum can change unnoticed.
  for (size_t i = 10; i < kPacked.size(); ++i) {
    CAPTURE(i);
    damaged = kPacked;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x01);
    CHECK(message_of([&] { unpack_gzip(damaged, "a.gz"); }) != "no error");
  }
}

TEST_CASE("a file that cannot be read is reported with its path") {
  const ScratchFolder folder;
  CHECK(message_of([&] { read_plain_or_gzip(folder.path("none")); }) ==
        "cannot read " + folder.path("none") + ": No such file or directory");
  CHECK(message_of([&] { read_plain_or_gzip(folder.path()); }) ==
        "cannot read " + folder.path() + ": Is a directory");
}

}  // namespace gzip_file_test
}  // namespace stepop
