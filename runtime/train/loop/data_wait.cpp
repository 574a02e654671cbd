#include "runtime/train/loop/data_wait.h"

#include <fmt/format.h>

namespace stepop {
namespace {

constexpr double kMuchWaiting = 0.5;

}  // namespace

DataWait::DataWait(int64_t workers, Clock::time_point now) : workers_(workers), begin_(now) {}

std::string DataWait::look(Clock::time_point now) {
  const Clock::duration passed = now - begin_;
  if (is_over_ || passed < kEvery) return "";
  const double share =
      std::chrono::duration<double>(waited_) / std::chrono::duration<double>(passed);
  begin_ = now;
  waited_ = {};
  if (share <= kMuchWaiting) return "";
  is_over_ = true;
  return fmt::format(
      "the training waits for its data: {:.0f} % of the last minute. With a larger "
      "n_data_processes "
      "(now {}) more threads load at once; --profile shows where the time goes",
      100 * share, workers_);
}

}  // namespace stepop
