#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/base/random.h"

namespace stepop {

/// STEPOP_FUZZ_COUNT, or `fallback`: how many inputs a test tries. `make fuzz` sets it.
inline uint64_t fuzz_count(uint64_t fallback) {
  const char* text = std::getenv("STEPOP_FUZZ_COUNT");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

/// STEPOP_FUZZ_SEED, which repeats a test; else always the same.
inline uint64_t fuzz_seed() {
  const char* text = std::getenv("STEPOP_FUZZ_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

}  // namespace stepop
