#include "runtime/core/formats/idx_file.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "runtime/core/measure/tensor_statistics.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace idx_file_test {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

/// The error for a file with this content, without the folder that it is in.
std::string message_for(const std::string& content) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.idx", content);
  const std::string message = message_of([&] { read_idx(path); });
  return message.starts_with(path) ? message.substr(folder.path().size() + 1) : message;
}

TEST_CASE("every type of the IDX format is read") {
  const ScratchFolder folder;
  const auto read = [&](const std::string& content) {
    return read_idx(folder.write("a.idx", content));
  };
  const at::Tensor matrix = read(bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255}));
  CHECK(describe_tensor(matrix) == "uint8 [2, 3]");
  CHECK(values_of<uint8_t>(matrix) == std::vector<uint8_t>{1, 2, 3, 4, 5, 255});
  CHECK(values_of<int8_t>(read(bytes({0, 0, 9, 1, 0, 0, 0, 2, 1, 255}))) ==
        std::vector<int8_t>{1, -1});
  CHECK(values_of<int16_t>(read(bytes({0, 0, 0x0b, 1, 0, 0, 0, 2, 1, 2, 255, 254}))) ==
        std::vector<int16_t>{0x0102, -2});
  CHECK(values_of<int32_t>(read(bytes({0, 0, 0x0c, 1, 0, 0, 0, 1, 1, 2, 3, 4}))) ==
        std::vector<int32_t>{0x01020304});
  CHECK(values_of<float>(read(bytes({0, 0, 0x0d, 1, 0, 0, 0, 1, 0xbf, 0xc0, 0, 0}))) ==
        std::vector<float>{-1.5F});
  CHECK(values_of<double>(read(bytes({0, 0, 0x0e, 1, 0, 0, 0, 1, 0x40, 0x09, 0x21, 0xfb, 0x54, 0x44,
                                      0x2d, 0x18}))) == std::vector<double>{3.141592653589793});
}

TEST_CASE("a file that is cut short says how many bytes it needs and has") {
  CHECK(message_for(bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3})) ==
        "a.idx: cut short: uint8 [2, 2, 2] needs 8 bytes after the header, found 3");
  CHECK(message_for(bytes({0, 0, 8, 3, 0, 0, 0, 2})) ==
        "a.idx: cut short: its IDX header needs 16 bytes, found 8");
  CHECK(message_for(bytes({0})) == "a.idx: cut short: its IDX header needs 4 bytes, found 1");
  CHECK(message_for("") == "a.idx: expected an IDX file, it is empty");
}

TEST_CASE("a file that is longer than its header says is reported") {
  CHECK(message_for(bytes({0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3})) ==
        "a.idx: longer than its header says: uint8 [2] needs 2 bytes after the header, found more");
}

TEST_CASE("a header that promises more than can be counted asks for no memory") {
  std::string content = bytes({0, 0, 8, 4});
  for (int i = 0; i < 16; ++i) content += '\xff';
  CHECK(message_for(content).find("a.idx: cut short: uint8 [4294967295, 4294967295, ") == 0);
  // Nor is there a tensor of such lengths when another one is 0.
  content[3] = 5;
  CHECK(message_for(content + std::string(4, '\0')).find("a.idx: cut short: uint8 [4294967295, ") ==
        0);
}

TEST_CASE("a packed file is unpacked one byte further than its header says") {
  const ScratchFolder folder;
  const std::string path = folder.path("a.idx");
  run_python(
      "import sys, gzip\n"
      "with gzip.open(sys.argv[1], 'wb', 9) as f:\n"
      "    f.write(bytes([0, 0, 8, 1, 0, 0, 0, 2]))\n"
      "    for i in range(300): f.write(bytes(1 << 20))\n",
      {path});
  // All of it would be too much.
  ::setenv("STEPOP_UNPACK_LIMIT", "1e7", 1);
  CHECK(message_of([&] { read_idx(path); }) ==
        path +
            ": longer than its header says: uint8 [2] needs 2 bytes after the header, found "
            "more");
  ::unsetenv("STEPOP_UNPACK_LIMIT");
}

TEST_CASE("a packed file that cannot hold what its header says asks for no memory") {
  const ScratchFolder folder;
  const std::string path = folder.path("a.idx");
  run_python(
      "import sys, gzip\n"
      "with gzip.open(sys.argv[1], 'wb', 9) as f:\n"
      "    f.write(bytes([0, 0, 8, 2, 127, 0, 0, 0, 127, 0, 0, 0]) + b'few')\n",
      {path});
  CHECK(message_of([&] {
          read_idx(path);
        }).starts_with(path + ": cut short: uint8 [2130706432, 2130706432] needs "));
}

TEST_CASE("another kind of file is told from IDX by its first bytes") {
  CHECK(message_for("\x89PNG\r\n") ==
        "a.idx: expected an IDX file, which begins with the bytes 00 00, found 89 50 4e 47");
  CHECK(message_for(bytes({0, 0, 7, 1, 0, 0, 0, 1, 1})) ==
        "a.idx: IDX type 0x07 is unknown; the format has 0x08 (uint8), 0x09 (int8), 0x0b "
        "(int16), 0x0c (int32), 0x0d (float32), 0x0e (float64)");
}

}  // namespace idx_file_test
}  // namespace stepop
