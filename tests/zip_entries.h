// Archives whose entries a test takes out, changes and packs again.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <map>
#include <string>

#include "runtime/core/formats/zip_file.h"

namespace stepop {

using ZipEntries = std::map<std::string, std::string>;

inline std::string zip_number(uint64_t value, int bytes) {
  return {reinterpret_cast<const char*>(&value), static_cast<size_t>(bytes)};
}

/// An archive whose entries are not packed.
inline std::string zipped(const ZipEntries& entries) {
  std::string bytes, directory;
  for (const auto& [name, content] : entries) {
    const uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    const std::string facts = zip_number(0, 8) + zip_number(crc, 4) +
                              zip_number(content.size(), 4) + zip_number(content.size(), 4) +
                              zip_number(name.size(), 2) + zip_number(0, 2);
    directory += "PK\1\2" + zip_number(20, 2) + zip_number(20, 2) + facts + std::string(10, '\0') +
                 zip_number(bytes.size(), 4) + name;
    bytes += "PK\3\4" + zip_number(20, 2) + facts + name + content;
  }
  const uint64_t count = entries.size();
  return bytes + directory + "PK\5\6" + zip_number(0, 4) + zip_number(count, 2) +
         zip_number(count, 2) + zip_number(directory.size(), 4) + zip_number(bytes.size(), 4) +
         zip_number(0, 2);
}

inline ZipEntries entries_of(const std::string& archive) {
  ZipEntries entries;
  for (const auto& entry : list_zip(archive, "net.pt2")) {
    entries[entry.name] = entry.is_stored ? archive.substr(entry.begin, entry.size)
                                          : unpack_zip_entry(archive, entry, "net.pt2");
  }
  return entries;
}

}  // namespace stepop
