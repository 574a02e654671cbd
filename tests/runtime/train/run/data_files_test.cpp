#include "runtime/train/run/data_files.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace data_files_test {

namespace fs = std::filesystem;

using enum DataChecksums;

void set_back(const std::string& path) {
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
}

TEST_CASE("a file is the same until its size, its time or its bytes change") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.csv", "1,2\n");
  const DataFile before = look_at_data(path, kSize);
  CHECK(before.bytes == 4);
  CHECK(before.content == "");
  CHECK(change_of_data(before, look_at_data(path, kSize)) == "");

  const DataFile read = look_at_data(path, kContent);
  CHECK(read.content.size() == 16);
  set_back(path);
  CHECK(change_of_data(before, look_at_data(path, kSize)).find("was written at 20") == 0);
  CHECK(change_of_data(read, look_at_data(path, kContent)) == "");

  folder.write("a.csv", "1,3\n");
  CHECK(change_of_data(read, look_at_data(path, kContent)) ==
        "has another content, of the same size");
  folder.write("a.csv", "1,3,4\n");
  CHECK(change_of_data(before, look_at_data(path, kSize)) == "has 6 bytes, it had 4");
  fs::remove(path);
  CHECK(change_of_data(before, look_at_data(path, kSize)) == "is gone");
  fs::create_directory(path);
  CHECK(change_of_data(before, look_at_data(path, kSize)) == "is a folder, it was a file");
}

TEST_CASE("a folder is known by the names and sizes of all that is below it") {
  const ScratchFolder folder;
  const std::string path = folder.path("images");
  folder.write("images/cat/1.png", "abc");
  folder.write("images/dog/1.png", "abcd");
  const DataFile before = look_at_data(path, kSize);
  CHECK(before.is_folder);
  CHECK(before.files == 2);
  CHECK(before.bytes == 7);
  const DataFile read = look_at_data(path + "/", kContent);
  CHECK(read.listing == before.listing);
  CHECK(change_of_data(before, look_at_data(path, kSize)) == "");

  fs::rename(path + "/cat/1.png", path + "/cat/2.png");
  CHECK(change_of_data(before, look_at_data(path, kSize)) == "has files of other names or sizes");
  fs::rename(path + "/cat/2.png", path + "/cat/1.png");
  const auto time = fs::last_write_time(path + "/cat/1.png");
  folder.write("images/cat/1.png", "abx");
  fs::last_write_time(path + "/cat/1.png", time);
  CHECK(change_of_data(read, look_at_data(path, kContent)) ==
        "has another content, of the same size");
  folder.write("images/fox/1.png", "");
  CHECK(change_of_data(before, look_at_data(path, kSize)) == "has 3 files, it had 2");
}

TEST_CASE("a folder that takes too long is said to be unknown, and is compared no further") {
  const ScratchFolder folder;
  for (int i = 0; i < 600; ++i) folder.write("many/" + std::to_string(i), "");
  const DataFile file = look_at_data(folder.path("many"), kContent, {}, /*listing_seconds=*/0);
  CHECK(file.failure.find("not listed: it took more than 0 s, and 2") == 0);
  CHECK(file.listing == "");
  CHECK(file.content == "");
  CHECK(change_of_data(file, look_at_data(folder.path("many"), kSize)) == "");
}

TEST_CASE("data_checksums is size, content or none") {
  const auto read = [](const std::string& text) {
    return read_data_checksums(Config(parse_yaml(text, {"a.yaml", 0})));
  };
  CHECK(read("{}") == kSize);
  CHECK(read("data_checksums: content") == kContent);
  CHECK(read("data_checksums: none") == kNone);
  CHECK(message_of([&] { read("data_checksums: sha1"); }) ==
        "a.yaml:1: data_checksums: expected size, content or none, found \"sha1\"");
}

}  // namespace data_files_test
}  // namespace stepop
