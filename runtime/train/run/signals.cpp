#include "runtime/train/run/signals.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace stepop {
namespace {

constexpr std::array kAskToEnd = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
constexpr std::array kIgnored = {SIGPIPE, SIGXFSZ};

// A signal handler may only touch such a flag.
volatile sig_atomic_t received_signal = 0;

std::array<struct sigaction, kAskToEnd.size() + kIgnored.size()> old_actions;

std::atomic<SignalGuard::Listener> listener = nullptr;

void tell_listener(int signal_number, bool is_last) {
  const int error = errno;  // the code that is interrupted here may look at it
  if (const auto call = listener.load()) call(signal_number, is_last);
  errno = error;
}

extern "C" void on_signal(int signal_number) {
  // SIGUSR1 is a mere request: it changes nothing after another one. Who passes a signal on, that
  // may have come here by itself, sends it.
  if (received_signal != 0 && signal_number == SIGUSR1) return;
  const bool is_last = received_signal != 0;
  if (!is_last) received_signal = signal_number;
  tell_listener(signal_number, is_last);
  if (is_last) _exit(128 + signal_number);
}

}  // namespace

SignalGuard::SignalGuard() {
  received_signal = 0;
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  size_t count = 0;
  for (const int number : kAskToEnd) {
    struct sigaction& old = old_actions[count++];
    sigaction(number, nullptr, &old);
    if (number == SIGHUP && old.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_signal;
    sigaction(number, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  for (const int number : kIgnored) sigaction(number, &action, &old_actions[count++]);
}

SignalGuard::~SignalGuard() {
  size_t count = 0;
  for (const int number : kAskToEnd) sigaction(number, &old_actions[count++], nullptr);
  for (const int number : kIgnored) sigaction(number, &old_actions[count++], nullptr);
  received_signal = 0;
}

int SignalGuard::received() { return received_signal; }

void SignalGuard::set_listener(Listener one) { listener = one; }

std::string signal_name(int signal_number) {
  const char* name = sigabbrev_np(signal_number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal_number);
}

void throw_if_signal_arrived() {
  const int number = SignalGuard::received();
  if (number != 0) throw Interrupted(signal_name(number) + " arrived", 128 + number);
}

}  // namespace stepop
