#include "runtime/core/formats/gzip_file.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace gzip_file_test {

/// Python: gzip.compress(b"hello, stepop", mtime=0)
const std::string kPacked(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\xd7\x51\x28\x2e\x49\x2d\xc8\x2f"
    "\x00\x00\x0d\xe4\x53\xf3\x0d\x00\x00\x00",
    33);

/// What a file with these bytes holds.
std::string unpacked(const std::string& bytes) {
  const ScratchFolder folder;
  return read_plain_or_gzip(folder.write("a.gz", bytes));
}

/// The message for such a file, without the folder that it is in.
std::string message_for(const std::string& bytes) {
  const std::string message = message_of([&] { unpacked(bytes); });
  const size_t name = message.find("a.gz");
  return name == std::string::npos ? message : message.substr(name);
}

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
  CHECK(unpacked(kPacked + kPacked) == "hello, stepophello, stepop");
  CHECK(unpacked(kPacked + std::string(512, '\0')) == "hello, stepop");
}

TEST_CASE("a gzip file that is cut short anywhere is reported with its size") {
  CHECK(message_for(kPacked.substr(0, 20)) ==
        "a.gz: the gzip data is cut short: the file ends after 20 bytes, which hold 9; copy or "
        "download it again");
  for (size_t size = 2; size < kPacked.size(); ++size) {
    CAPTURE(size);
    const std::string message = message_for(kPacked.substr(0, size));
    CHECK(message.find("a.gz: the gzip data is cut short") == 0);
  }
}

TEST_CASE("damaged gzip data is reported with zlib's reason") {
  std::string damaged = kPacked;
  damaged[27] = 'x';
  CHECK(message_for(damaged) ==
        "a.gz: the gzip data is corrupt (incorrect data check); copy or download it again");
  CHECK(message_for(kPacked + "rest") == "a.gz: 4 bytes that are not gzip follow the gzip data");
  // No byte of the data or of its check sum can change unnoticed.
  for (size_t i = 10; i < kPacked.size(); ++i) {
    CAPTURE(i);
    damaged = kPacked;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x01);
    CHECK(message_for(damaged) != "no error");
  }
}

/// `size` zeros as gzip, of which Python makes a thousandth.
std::string packed_zeros(const std::string& path, int64_t size) {
  run_python(
      "import sys, gzip\n"
      "zeros = bytes(1 << 20)\n"
      "with gzip.open(sys.argv[1], 'wb', 9) as f:\n"
      "    for i in range(0, int(sys.argv[2]), len(zeros)): f.write(zeros[:int(sys.argv[2]) - "
      "i])\n",
      {path, std::to_string(size)});
  return path;
}

TEST_CASE("only what is asked for is unpacked, and the rest is checked at the end") {
  const ScratchFolder folder;
  PlainOrGzip file(folder.write("a.gz", kPacked));
  std::string text(5, ' ');
  CHECK(file.read(text.data(), 5) == 5);
  CHECK(text == "hello");
  text.resize(100);
  CHECK(file.read(text.data(), 100) == 8);
  CHECK(file.read(text.data(), 100) == 0);
  std::string damaged = kPacked;
  damaged[27] = 'x';  // the check sum
  PlainOrGzip other(folder.write("b.gz", damaged));
  CHECK(other.read(text.data(), 12) == 12);
  CHECK(message_of([&] { other.read(text.data(), 2); }).find("incorrect data check") !=
        std::string::npos);
}

TEST_CASE("a few megabytes that unpack to many gigabytes are refused where the limit is reached") {
  const ScratchFolder folder;
  const std::string path = packed_zeros(folder.path("a.gz"), 30'000'000);
  ::setenv("STEPOP_UNPACK_LIMIT", "1e7", 1);
  const std::string message = message_of([&] { read_plain_or_gzip(path); });
  CHECK(message.starts_with(path + ": its first "));
  CHECK(message.find(" unpack to ") != std::string::npos);
  CHECK(message.find("it is damaged, or made to fill the memory") != std::string::npos);
  const size_t remedy = message.find("STEPOP_UNPACK_LIMIT=") + 20;
  ::setenv("STEPOP_UNPACK_LIMIT",
           message.substr(remedy, message.find(' ', remedy) - remedy).c_str(), 1);
  CHECK(read_plain_or_gzip(path).size() == 30'000'000);
  ::unsetenv("STEPOP_UNPACK_LIMIT");
}

TEST_CASE("a file that the disk stores nothing of is no data") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.csv", "a,b\n");
  std::filesystem::resize_file(path, 5'000'000'000);
  CHECK(message_of([&] {
          read_plain_or_gzip(path);
        }).starts_with(path + ": it has 5.0 GB, of which the disk stores next to nothing: "));
}

TEST_CASE("nothing but a regular file is opened: a pipe would wait, a device has no end") {
  const ScratchFolder folder;
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    CHECK(message_of([&] { read_plain_or_gzip(path); }) ==
          "cannot read " + path + ": it is a pipe or a device, not a regular file");
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
