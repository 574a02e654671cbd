#pragma once

#include <cstdint>
#include <span>

namespace stepop {

/// From this code point on, up to that of the next run, the value is this one.
struct CategoryRun {
  uint32_t first;
  uint8_t value;
};

/// What a character is canonically equal to: one other, or two.
struct Decomposition {
  uint32_t character;
  uint32_t first;
  uint32_t second;   ///< 0: there is one.
  uint8_t composes;  ///< Whether NFC puts the two together again.
};

/// `first`, `first + step` ... `last` have their small letters at one distance.
struct LowerCaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t distance;
};

extern const std::span<const CategoryRun> kCategoryRuns;
extern const std::span<const CategoryRun> kCombiningClassRuns;
extern const std::span<const Decomposition> kDecompositions;  ///< By their characters, ascending.
extern const std::span<const LowerCaseRun> kLowerCaseRuns;

}  // namespace stepop
