#include "runtime/train/run/spin_watch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/processor_time.h"
#include "runtime/core/system/start_thread.h"

// GCC's OpenMP, whose threads LibTorch uses.
extern "C" void GOMP_parallel(void (*call)(void*), void* data, unsigned threads, unsigned flags)
    __attribute__((weak));

namespace stepop {
namespace {

constexpr std::chrono::milliseconds kEvery{200};
constexpr double kMuchTooLate = 0.4;  // seconds

// Shares of the time, per thread. On an otherwise idle machine with two threads the share is 0.005,
// from small work of the system; one other program that needs a core makes it 0.7.
constexpr double kMuch = 0.25;
constexpr double kLittle = 0.05;
constexpr double kMuchMoreByThread = 0.004;
constexpr double kLittleMoreByThread = 0.002;

/// Seconds without other work before spinning begins again. The number doubles if spinning lasted
/// for less than `kSoon`.
constexpr double kFirstNeeded = 1;
constexpr double kSoon = 30;
constexpr double kMostNeeded = 60;

/// Throws Error instead of libgomp, which ends the program when it cannot start a thread.
void check_startable(size_t threads) {
  std::binary_semaphore end{0};
  std::vector<std::thread> started;
  std::exception_ptr problem;
  try {
    for (size_t i = 0; i < threads; ++i) {
      started.push_back(start_thread("has waiting threads sleep", [&] {
        end.acquire();
        end.release();
      }));
    }
  } catch (const Error&) {
    problem = std::current_exception();
  }
  end.release();
  for (std::thread& each : started) each.join();
  if (problem) std::rethrow_exception(problem);
}

}  // namespace

SpinPolicy::SpinPolicy(int threads)
    : much_(kMuch + kMuchMoreByThread * threads),
      little_(kLittle + kLittleMoreByThread * threads),
      needed_(kFirstNeeded) {}

bool SpinPolicy::note(double elapsed, double waited) {
  const double share = waited / elapsed;
  if (spins_) {
    spun_ += elapsed;
    if (share < much_) return true;
    spins_ = false;
    needed_ = spun_ < kSoon ? std::min(2 * needed_, kMostNeeded) : kFirstNeeded;
    quiet_ = 0;
    return false;
  }
  quiet_ = share < little_ ? quiet_ + elapsed : 0;
  if (quiet_ < needed_) return false;
  spins_ = true;
  spun_ = 0;
  return true;
}

SpinWatch::SpinWatch(int threads) {
  if (GOMP_parallel == nullptr || !processor_time()) return;
  thread_ = start_thread("looks whether other programs want the cores",
                         [this, threads] { run(threads); });
}

SpinWatch::~SpinWatch() {
  if (!thread_.joinable()) return;
  end_.release();
  thread_.join();
}

void SpinWatch::run(int threads) {
  using Clock = std::chrono::steady_clock;
  SpinPolicy policy(threads);
  std::optional<Crowd> crowd;
  auto then = Clock::now();
  auto before = processor_time();
  while (!end_.try_acquire_for(kEvery)) {
    const auto now = Clock::now();
    const auto after = processor_time();
    if (!before || !after) break;
    // The waiting time of threads that have ended is unknown.
    const double waited = std::max(after->wait - before->wait, 0.0);
    const double elapsed = std::chrono::duration<double>(now - then).count();
    then = now;
    const bool had_work = after->run + after->wait - before->run - before->wait > elapsed / 2;
    before = after;
    if (!had_work && elapsed > kMuchTooLate) continue;  // the process has just resumed
    if (policy.note(elapsed, waited)) {
      crowd.reset();
    } else if (!crowd) {
      try {
        crowd.emplace(threads);
      } catch (const Error&) {  // the training already has all threads that it needs
        break;
      }
    }
  }
}

Crowd::Crowd(int threads) {
  const long cores = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  const auto team = static_cast<size_t>(std::max(2L, cores - threads + 2));
  check_startable(team);
  thread_ = start_thread("has waiting threads sleep", [this, team] {
    GOMP_parallel([](void*) {}, nullptr, static_cast<unsigned>(team), 0);
    end_.acquire();
  });
}

Crowd::~Crowd() {
  end_.release();
  thread_.join();
}

}  // namespace stepop
