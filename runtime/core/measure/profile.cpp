#include "runtime/core/measure/profile.h"

#include <algorithm>
#include <bit>
#include <exception>

namespace stepop {
namespace {

constexpr int kBits = 7;
constexpr uint64_t kBins = uint64_t{1} << kBits;

/// Below 2^8 ns, a bin is a nanosecond wide; its width doubles after each power of two.
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

Profile::Profile(std::function<void()> synchronize) : synchronize_(std::move(synchronize)) {
  whole_.name = "training";
}

Profile::Clock::time_point Profile::read_clock() const {
  if (synchronize_ && waits_) synchronize_();
  return Clock::now();
}

void Profile::begin(std::initializer_list<std::string_view> name) {
  name_.clear();
  for (const auto& part : name) name_ += part;
  auto& siblings = (open_.empty() ? whole_ : *open_.back().part).parts;
  auto found = std::find_if(siblings.begin(), siblings.end(),
                            [&](const auto& part) { return part->name == name_; });
  if (found == siblings.end()) {
    found = siblings.insert(found, std::make_unique<Part>());
    (*found)->name = name_;
  }
  open_.push_back({found->get(), read_clock()});
}

void Profile::end() noexcept {
  Clock::time_point now;
  try {
    now = read_clock();
  } catch (const std::exception&) {  // the next use of the device reports the error
    now = Clock::now();
  }
  const Open span = open_.back();
  open_.pop_back();
  ++span.part->count;
  span.part->total += now - span.begin;
  span.part->times.add(now - span.begin);
  if (!is_tracing()) return;
  const std::lock_guard lock(mutex_);
  keep(span.part->name, 0, span.begin, now);
}

void Profile::step_done() {
  const int64_t steps = steps_.load(std::memory_order_relaxed) + 1;
  steps_.store(steps, std::memory_order_relaxed);
  if (steps >= kTracedSteps) is_tracing_.store(false, std::memory_order_relaxed);
}

void Profile::stop() {
  whole_.count = 1;
  whole_.total = read_clock() - begin_;
  const std::lock_guard lock(mutex_);  // from now on, no thread adds events
  is_tracing_.store(false, std::memory_order_relaxed);
}

void Profile::add(std::string_view thread, std::string_view name, Clock::time_point begin,
                  Clock::time_point end) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find(threads_.begin(), threads_.end(), thread);
  const auto number = static_cast<size_t>(known - threads_.begin());
  if (!is_tracing()) return;
  if (known == threads_.end()) threads_.emplace_back(thread);
  keep(*names_.emplace(name).first, number, begin, end);
}

/// Called with the mutex locked.
void Profile::keep(std::string_view name, size_t thread, Clock::time_point begin,
                   Clock::time_point end) {
  if (!is_tracing()) return;
  events_.push_back({name, thread, steps(), begin - begin_, end - begin});
  if (events_.size() == kMostEvents) is_tracing_.store(false, std::memory_order_relaxed);
}

}  // namespace stepop
