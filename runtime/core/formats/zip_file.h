#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A file in a ZIP archive.
struct ZipEntry {
  std::string name;
  bool is_stored = true;  ///< Whether the bytes are in the archive unpacked.
  size_t begin = 0;       ///< The position of the bytes in the archive.
  size_t packed_size = 0;
  size_t size = 0;
  uint32_t crc = 0;
};

/// The files in an archive, in the order of its directory; ZIP64 too. Throws Error that begins with
/// `name` for bytes that are no archive, a damaged directory, entries outside the archive or
/// on each other, encrypted entries, and a packing other than none and deflate.
std::vector<ZipEntry> list_zip(std::string_view archive, const std::string& name);

/// The bytes of a packed entry. Throws Error that begins with `name` when the bytes are damaged,
/// and when they unpack to too much, see is_too_much_unpacked.
std::string unpack_zip_entry(std::string_view archive, const ZipEntry& entry,
                             const std::string& name);

/// Throws Error when the bytes of a stored entry have another checksum.
void check_zip_entry(std::string_view archive, const ZipEntry& entry, const std::string& name);

}  // namespace stepop
