#include "runtime/run/signals.h"

#include <signal.h>
#include <unistd.h>

namespace stepop {
namespace {

// What a handler may touch: nothing but such a flag.
volatile sig_atomic_t received_signal = 0;

struct sigaction old_interrupt, old_terminate;

extern "C" void on_signal(int signal_number) {
  if (received_signal != 0) _exit(128 + signal_number);
  received_signal = signal_number;
}

}  // namespace

SignalGuard::SignalGuard() {
  received_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_interrupt);
  sigaction(SIGTERM, &action, &old_terminate);
}

SignalGuard::~SignalGuard() {
  sigaction(SIGINT, &old_interrupt, nullptr);
  sigaction(SIGTERM, &old_terminate, nullptr);
  received_signal = 0;
}

int SignalGuard::received() { return received_signal; }

}  // namespace stepop
