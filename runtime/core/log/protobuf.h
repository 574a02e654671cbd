#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepop::protobuf {

// Protocol buffers (https://protobuf.dev/programming-guides/encoding). Fields are numbered as in
// TensorBoard's event.proto and summary.proto.

template <class Unsigned>
std::string little_endian(Unsigned number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(number); ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

inline std::string varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

inline std::string tag(uint64_t field, WireType type) { return varint(field << 3 | type); }

inline std::string number_field(uint64_t field, int64_t number) {
  return tag(field, kVarint) + varint(static_cast<uint64_t>(number));
}

/// Text, bytes or a message.
inline std::string bytes_field(uint64_t field, std::string_view bytes) {
  return tag(field, kLength) + varint(bytes.size()) + std::string(bytes);
}

inline std::string double_field(uint64_t field, double number) {
  return tag(field, kFixed64) + little_endian(std::bit_cast<uint64_t>(number));
}

inline std::string float_field(uint64_t field, float number) {
  return tag(field, kFixed32) + little_endian(std::bit_cast<uint32_t>(number));
}

}  // namespace stepop::protobuf
