#pragma once

#include <cmath>

namespace stepop {

/// Whether float32 has a finite number nearest to `number`. What NumPy and C print as the largest
/// float32, 3.4028235e38, is a little above it and rounds to it.
inline bool fits_float32(double number) { return std::abs(number) < 0x1.ffffffp127; }

}  // namespace stepop
