#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace stepop {

/// A number that depends on all of `parts` and their order: (seed, split, epoch) -> a seed.
constexpr uint64_t mix_seed(std::initializer_list<uint64_t> parts) {
  uint64_t state = 0x9e3779b97f4a7c15;
  for (uint64_t part : parts) {
    state += part + 0x9e3779b97f4a7c15;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    state ^= state >> 31;
  }
  return state;
}

/// A text as a part of a seed (FNV-1a).
constexpr uint64_t seed_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// A small random generator (SplitMix64) whose numbers are the same on every machine. It costs
/// nothing to seed, so every example of every epoch gets its own. Not for cryptography.
class Random {
 public:
  using result_type = uint64_t;

  explicit Random(uint64_t seed) : state_(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<uint64_t>::max(); }

  uint64_t operator()() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  /// Uniform among 0 .. n-1; n is at least 1. Without bias (Lemire 2019).
  int64_t below(int64_t n) {
    const auto range = static_cast<uint64_t>(n);
    __extension__ using uint128 = unsigned __int128;
    uint128 product = static_cast<uint128>((*this)()) * range;
    if (static_cast<uint64_t>(product) < range) {
      const uint64_t threshold = (0 - range) % range;
      while (static_cast<uint64_t>(product) < threshold) {
        product = static_cast<uint128>((*this)()) * range;
      }
    }
    return static_cast<int64_t>(product >> 64);
  }

  /// Standard normal (Box-Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace stepop
