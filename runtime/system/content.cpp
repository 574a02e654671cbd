#include "runtime/system/content.h"

#include <fstream>
#include <iterator>

#include "runtime/system/checksum.h"

namespace stepop {

std::optional<std::string> read_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string content_checksum(const std::string& bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.text();
}

std::string file_checksum(const std::string& path) {
  return content_checksum(read_content(path).value_or(""));
}

}  // namespace stepop
