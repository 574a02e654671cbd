#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// One tensor in the header of a safetensors file. `begin` and `end` count bytes from the end of
/// the header.
struct SafetensorsEntry {
  std::string name;
  c10::ScalarType type = c10::ScalarType::Float;  ///< Undefined if the values cannot be read.
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string type_name = {};  ///< The header's name, `F32`; empty if not read from a file.
};

/// The header of a safetensors file; the entries are sorted by the position of their bytes.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// The metadata key of a file's checksum: 16 hex digits, the XXH3-64 of all bytes of the file with
/// these 16 digits set to zeros.
inline constexpr const char* kChecksumKey = "checksum";

/// The length of the longest header that the format allows.
constexpr uint64_t kLongestSafetensorsHeader = 100'000'000;

/// The format's name of a type; empty for a type that the format does not have.
std::string_view safetensors_type_name(c10::ScalarType type);

/// `tensor "a" has the dtype "U16", which cannot be read; those that can be are: F32, ...`.
std::string unread_type_text(const SafetensorsEntry& entry);

/// The header's JSON, padded with spaces to a multiple of 8 bytes. Throws Error for bad UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// Parses the JSON of a file whose tensors take `data_bytes`. Throws Error, without a path, for a
/// header that breaks a rule of the format.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes);

}  // namespace stepop
