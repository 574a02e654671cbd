#include "runtime/core/base/key_hash.h"

#include <random>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stepop {

size_t KeyHash::operator()(std::string_view key) const {
  static const XXH64_hash_t seed = std::random_device()();
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

}  // namespace stepop
