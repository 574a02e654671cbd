#include "runtime/measure/time_histogram.h"

#include <algorithm>
#include <bit>

namespace stepop {
namespace {

constexpr int kBits = 7;
constexpr uint64_t kBins = uint64_t{1} << kBits;

/// Up to 2^8 ns a bin is a nanosecond wide, then twice as wide after each power of two.
size_t bin_of(uint64_t time) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(time)) - kBits - 1);
  return kBins * static_cast<uint64_t>(shift) + (time >> shift);
}

uint64_t middle_of(size_t bin) {
  const uint64_t shift = bin < 2 * kBins ? 0 : bin / kBins - 1;
  const uint64_t width = uint64_t{1} << shift;
  return (bin - kBins * shift) * width + width / 2;
}

}  // namespace

void TimeHistogram::add(std::chrono::nanoseconds time) {
  const size_t bin = bin_of(static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)));
  if (bin >= counts_.size()) counts_.resize(bin + 1);
  ++counts_[bin];
  ++count_;
}

std::chrono::nanoseconds TimeHistogram::median() const {
  int64_t seen = 0;
  for (size_t bin = 0; bin < counts_.size(); ++bin) {
    seen += counts_[bin];
    if (2 * seen >= count_) return std::chrono::nanoseconds(middle_of(bin));
  }
  return {};
}

}  // namespace stepop
