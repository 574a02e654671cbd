#pragma once

#include <cstddef>
#include <cstdint>

namespace stepop {

/// An image's byte as a number in [-1, 1]: 0 is -1 and 255 is 1, both exactly.
inline float from_byte(uint8_t byte) {
  return (static_cast<float>(byte) - 127.5F) * (1.0F / 127.5F);
}

/// `count` bytes as numbers in [-1, 1]; compilers turn it into vector instructions.
inline void from_bytes(const uint8_t* bytes, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = from_byte(bytes[i]);
}

/// The nearest byte to a number in [-1, 1]; what lies outside is clamped. Not for NaN.
inline uint8_t to_byte(float value) {
  const float clamped = value < -1.0F ? -1.0F : (value > 1.0F ? 1.0F : value);
  return static_cast<uint8_t>(clamped * 127.5F + 128.0F);
}

}  // namespace stepop
