#pragma once

#include <cstdint>
#include <span>

namespace stepop {

/// A run of code points with the same value; it ends where the next run begins.
struct CategoryRun {
  uint32_t first;
  uint8_t value;
};

/// The canonical decomposition of a character: one other character, or two.
struct Decomposition {
  uint32_t character;
  uint32_t first;
  uint32_t second;   ///< 0 when the decomposition is one character.
  uint8_t composes;  ///< Whether NFC composes the two again.
};

/// The letters `first`, `first + step` ... `last` have their small letters at the same distance.
struct LowerCaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t distance;
};

extern const std::span<const CategoryRun> kCategoryRuns;
extern const std::span<const CategoryRun> kCombiningClassRuns;
extern const std::span<const Decomposition> kDecompositions;  ///< Sorted by character.
extern const std::span<const LowerCaseRun> kLowerCaseRuns;

}  // namespace stepop
