#pragma once

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace stepop {

/// Throws Error for a thread that cannot be started; `task` says what it does: `writes model.bin`.
[[noreturn]] void fail_thread(const std::string& task, const std::system_error& error);

/// Starts a thread that receives no signals; the main thread handles them. Throws the same errors
/// as `fail_thread`.
template <class Call>
std::thread start_thread(const std::string& task, Call call) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto restore = [&] { pthread_sigmask(SIG_SETMASK, &before, nullptr); };
  try {
    std::thread thread(std::move(call));
    restore();
    return thread;
  } catch (const std::system_error& error) {
    restore();
    fail_thread(task, error);
  }
}

}  // namespace stepop
