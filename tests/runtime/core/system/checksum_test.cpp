#include "runtime/core/system/checksum.h"

#include <doctest/doctest.h>

#include <map>

namespace stepop {
namespace checksum_test {

/// The first `size` bytes of 0, 1, 4, 9, ... modulo 251.
std::string squares(size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * i % 251);
  return bytes;
}

TEST_CASE("a checksum is what Python's xxhash gives, whatever the length") {
  // xxhash 4.1.0: xxhash.xxh3_64_hexdigest(bytes(i * i % 251 for i in range(size)))
  const std::map<size_t, std::string> table = {
      {0, "2d06800538d394c2"},       {1, "c44bdff4074eecdb"},    {3, "37892f624f40b19c"},
      {8, "bcfe131fa6cb6952"},       {16, "f36d1380fc3d25fd"},   {17, "85b86fb76a78e347"},
      {128, "a05397602c0d7380"},     {240, "2599f7836101b7c7"},  {241, "fa3e3f950b821a67"},
      {1023, "fa573b14666f118d"},    {1024, "a3115476086f73f1"}, {1025, "66b070bd27327c00"},
      {1000000, "e347269ca263307e"},
  };
  for (const auto& [size, expected] : table) {
    Checksum checksum;
    checksum.add(squares(size));
    CHECK(checksum.text() == expected);
  }
}

TEST_CASE("how the bytes are divided changes nothing, and the sum can be asked for in between") {
  const std::string bytes = squares(1000000);
  Checksum checksum;
  for (size_t begin = 0, size = 0; begin < bytes.size(); begin += size, size = size * 2 + 1) {
    checksum.add(std::string_view(bytes).substr(begin, size));
    if (begin + size == 0) CHECK(checksum.text() == "2d06800538d394c2");
  }
  CHECK(checksum.text() == "e347269ca263307e");
}

}  // namespace checksum_test
}  // namespace stepop
