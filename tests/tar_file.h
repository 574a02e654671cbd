#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace stepop {

/// The header of one member of a tar archive, as POSIX has it.
inline std::string tar_header(const std::string& name, uint64_t size, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&](size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  char number[13];
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  std::snprintf(number, sizeof number, "%011lo", static_cast<unsigned long>(size));
  put(124, number);
  put(136, "00000000000");
  put(148, "        ");
  header[156] = type;
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(number, sizeof number, "%06o", sum);
  put(148, std::string_view(number, 7));
  return header;
}

/// A member with its content, padded.
inline std::string tar_member(const std::string& name, const std::string& content,
                              char type = '0') {
  return tar_header(name, content.size(), type) + content +
         std::string((512 - content.size() % 512) % 512, '\0');
}

/// What ends an archive.
inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace stepop
