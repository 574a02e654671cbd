#include "runtime/core/measure/processor_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "runtime/core/system/read_file.h"

namespace stepop {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr double kMuchWaiting = 1.0 / 3;
constexpr double kLeastWork = 1;  // seconds; a shorter time proves nothing

}  // namespace

std::optional<ProcessorTime> processor_time() {
  std::error_code failed;
  std::filesystem::directory_iterator tasks("/proc/self/task", failed);
  ProcessorTime sum;
  bool is_known = false;
  for (; !failed && tasks != std::filesystem::directory_iterator(); tasks.increment(failed)) {
    // The columns: nanoseconds on a processor, nanoseconds of waiting for a processor, turns.
    const auto text = try_read_file((tasks->path() / "schedstat").string());
    if (!text) continue;
    std::istringstream numbers(*text);
    double run = 0;
    double wait = 0;
    if (!(numbers >> run >> wait)) continue;
    is_known = true;
    sum.run += run * kNanosecond;
    sum.wait += wait * kNanosecond;
  }
  return is_known ? std::optional(sum) : std::nullopt;
}

std::string busy_machine_text(const ProcessorTime& begin, const ProcessorTime& end, int threads) {
  const double run = std::max(end.run - begin.run, 0.0);
  const double wait = std::max(end.wait - begin.wait, 0.0);
  if (run + wait < kLeastWork || wait < kMuchWaiting * (run + wait)) return "";
  const double share = wait / (run + wait);
  const int fewer = std::max(1, static_cast<int>(std::floor((1 - share) * threads)));
  std::string text = fmt::format(
      "the machine is busy: the threads of this training waited for a processor for {:.0f} % of "
      "the "
      "time in which they had work",
      100 * share);
  if (fewer < threads) {
    text += fmt::format("; num_threads: {} instead of {} may be faster", fewer, threads);
  }
  return text;
}

ProcessorWatch::ProcessorWatch(int threads, Clock::time_point now)
    : threads_(threads), last_(now), before_(processor_time()) {}

std::string ProcessorWatch::look(Clock::time_point now) {
  if (!before_ || now - last_ < kEvery) return "";
  last_ = now;
  const auto after = processor_time();
  if (!after) return "";
  std::string text = busy_machine_text(*before_, *after, threads_);
  before_ = text.empty() ? after : std::nullopt;
  return text;
}

}  // namespace stepop
