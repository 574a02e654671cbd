#include "runtime/core/base/unpack_limit.h"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr double kUnpackLimit = 2e9;
/// Masks and flat pictures shrink to a hundredth, zeros to a thousandth.
constexpr double kMostUnpacked = 100;
constexpr const char* kUnpackLimitName = "STEPOP_UNPACK_LIMIT";

}  // namespace

double unpack_limit() {
  const char* given = std::getenv(kUnpackLimitName);
  if (given == nullptr || *given == 0) return kUnpackLimit;
  char* end = nullptr;
  const double bytes = std::strtod(given, &end);
  if (*end == 0 && bytes >= 0) return bytes;
  throw Error(fmt::format("{}: expected a number of bytes such as 20e9, found \"{}\"",
                          kUnpackLimitName, given));
}

bool is_too_much_unpacked(double unpacked, double stored) {
  return unpacked > unpack_limit() && unpacked > kMostUnpacked * stored;
}

std::string unpack_remedy(double unpacked) {
  return fmt::format(
      "it is damaged, or made to fill the memory. If you know where it is from, {}={:.0e} in the "
      "environment takes it",
      kUnpackLimitName, 2 * unpacked);
}

}  // namespace stepop
