#include "runtime/log/crc32c.h"

#include <doctest/doctest.h>

#include <string>

namespace stepop {
namespace crc32c_test {

TEST_CASE("CRC-32C is that of RFC 3720's examples") {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  const std::string descending(ascending.rbegin(), ascending.rend());
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(crc32c(ascending) == 0x46dd794e);
  CHECK(crc32c(descending) == 0x113fdb5c);
}

}  // namespace crc32c_test
}  // namespace stepop
