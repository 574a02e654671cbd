#include "runtime/train/distributed/sum_times.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/core/base/number_text.h"

namespace stepop {

void SumTimes::add(const c10::intrusive_ptr<c10d::Work>& sum, Profile::Clock::time_point begin,
                   size_t bytes, bool is_last) {
  if (profile_ == nullptr) return;
  const auto end = std::make_shared<std::atomic<Profile::Clock::time_point>>(begin);
  sums_.push_back({begin, end, bytes});
  sum->getFuture()->addCallback([end](c10::ivalue::Future&) { *end = Profile::Clock::now(); });
  if (is_last) waiting_.emplace(profile_, "waiting for sums of gradients");
}

void SumTimes::end_pass() {
  waiting_.reset();
  if (sums_.empty()) return;
  // Several sums run at the same time.
  Profile::Clock::duration total{0};
  Profile::Clock::duration beside{0};
  const Profile::Clock::time_point last = sums_.back().begin;
  Profile::Clock::time_point until = sums_.front().begin;
  for (const Sum& sum : sums_) {
    const Profile::Clock::time_point begin = std::max(sum.begin, until);
    until = std::max(until, sum.end->load());
    total += until - begin;
    beside += std::max(std::min(until, last) - begin, Profile::Clock::duration{0});
    profile_->add("between processes",
                  fmt::format("sum {}", size_text(static_cast<double>(sum.bytes))), sum.begin,
                  *sum.end);
  }
  profile_->add_sums(total, beside);
  sums_.clear();
}

}  // namespace stepop
