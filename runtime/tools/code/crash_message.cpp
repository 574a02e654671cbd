#include "runtime/tools/code/crash_message.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/core/base/crash_place.h"
#include "runtime/tools/code/code_places.h"
#include "runtime/train/run/signals.h"

namespace stepop {
namespace {

constexpr std::array kFatal = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr unsigned kMostSeconds = 10;  // the handler may wait for a lock that the crash left
constexpr size_t kMostShown = 12;

alignas(64) std::array<char, 256 * 1024> handler_stack;
std::array<struct sigaction, kFatal.size()> old_actions{};
std::array<bool, kFatal.size()> is_ours{};
std::atomic<CrashMessage*> newest{nullptr};
std::atomic_flag is_crashing = ATOMIC_FLAG_INIT;
volatile sig_atomic_t fatal_signal = 0;

/// A line of the message; text that does not fit is cut.
class Line {
 public:
  Line& add(std::string_view text) {
    const size_t count = std::min(text.size(), sizeof text_ - size_);
    std::memcpy(text_ + size_, text.data(), count);
    size_ += count;
    return *this;
  }
  Line& add(int64_t number) {
    char digits[24];
    char* at = digits + sizeof digits;
    auto rest = static_cast<uint64_t>(number < 0 ? -number : number);
    do {
      *--at = static_cast<char>('0' + rest % 10);
    } while ((rest /= 10) > 0);
    if (number < 0) *--at = '-';
    return add({at, static_cast<size_t>(digits + sizeof digits - at)});
  }
  /// `0x1f`
  Line& add_address(size_t address) {
    char digits[2 * sizeof address];
    char* at = digits + sizeof digits;
    do {
      *--at = "0123456789abcdef"[address % 16];
    } while ((address /= 16) > 0);
    return add("0x").add({at, static_cast<size_t>(digits + sizeof digits - at)});
  }
  void write() {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_, size_);
    size_ = 0;
  }
  /// Ends with a zero.
  const char* text() {
    text_[std::min(size_, sizeof text_ - 1)] = 0;
    return text_;
  }

 private:
  char text_[2048];
  size_t size_ = 0;
};

void end_by(int number) {
  ::signal(number, SIG_DFL);
  sigset_t one{};
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(number);
}

extern "C" void on_time_over(int) { end_by(fatal_signal); }

/// Reads lines of addr2line into `text`, of `most` characters; a longer line is cut. Returns the
/// length, or -1 at the end.
int64_t read_line(int from, char* text, size_t most) {
  size_t size = 0;
  char c = 0;
  while (::read(from, &c, 1) == 1) {
    if (c == '\n') return static_cast<int64_t>(size);
    if (size < most) text[size++] = c;
  }
  return -1;
}

/// Writes what addr2line says, a function and its place by turns, but for headers of others, such
/// as the path through std::function to an op: `  /home/ada/denoiser.cpp:31: in Denoiser::step_op`.
void copy_places(int from) {
  constexpr size_t kMost = 16 * 1024;
  static char function[kMost];
  static char place[kMost];
  while (true) {
    const int64_t function_size = read_line(from, function, kMost);
    const int64_t place_size = read_line(from, place, kMost);
    if (function_size < 0 || place_size < 0) return;
    std::string_view path(place, static_cast<size_t>(place_size));
    path = path.substr(0, path.find(" (discriminator"));
    if (path.starts_with('?') || path.ends_with(":?") || path.ends_with(":0")) continue;
    if (is_path_of_others(path)) continue;
    const size_t size = shorten_symbol({function, static_cast<size_t>(function_size)}, function);
    Line line;
    line.add("  ").add(path).add(": in ");
    line.add(size > 0 ? std::string_view(function, size) : "a lambda").add("\n").write();
  }
}

/// Writes the places of the addresses in one library, with addr2line if it exists.
void write_places(const UserLibrary& library, void** addresses, size_t count) {
  Line names[kMostShown];
  const char* words[kMostShown + 5] = {"addr2line", "-Cfie", library.path};
  for (size_t i = 0; i < count; ++i) {
    names[i].add_address(reinterpret_cast<size_t>(addresses[i]) - library.offset);
    words[3 + i] = names[i].text();
  }
  const char* program = addr2line_path().c_str();
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) program = "";
  // fork() runs handlers that take locks; the system call itself does not.
  const auto child =
      *program == 0 ? pid_t{-1} : static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execv(program, const_cast<char**>(words));
    ::_exit(127);
  }
  ::close(ends[1]);
  if (child > 0) copy_places(ends[0]);
  ::close(ends[0]);
  int status = 1;
  if (child > 0 && ::waitpid(child, &status, 0) == child && status == 0) return;
  Line line;
  line.add("addr2line -Cfie ").add(library.path);
  for (size_t i = 0; i < count; ++i) line.add(" ").add(names[i].text());
  line.add("\n").write();
}

void write_frames() {
  void* addresses[kMostShown];
  const size_t count = user_frames(addresses, kMostShown);
  if (count == 0) return;
  Line().add("in your own code, the innermost function first:\n").write();
  const auto library_of = [&](size_t i) {
    const UserLibrary* library = user_libraries();
    const auto address = reinterpret_cast<size_t>(addresses[i]);
    while (address < library->begin || address >= library->end) ++library;
    return library;
  };
  for (size_t i = 0; i < count;) {
    const size_t first = i;
    while (i < count && library_of(i) == library_of(first)) ++i;
    write_places(*library_of(first), addresses + first, i - first);
  }
}

}  // namespace

namespace {

/// `, with the examples 7, 3, 11 and 61 more`
void add_examples(Line& line) {
  const std::vector<int64_t>* examples = crash_place.examples;
  if (examples == nullptr || examples->empty()) return;
  constexpr size_t kMost = 8;
  const size_t shown = std::min(examples->size(), kMost);
  line.add(", with the examples ");
  for (size_t i = 0; i < shown; ++i) line.add(i > 0 ? ", " : "").add((*examples)[i]);
  const size_t rest = examples->size() - shown;
  if (rest > 0) line.add(" and ").add(static_cast<int64_t>(rest)).add(" more");
}

}  // namespace

struct CrashHandler {
  /// Adds the training's place to `line`, and writes the line.
  static void write_message(const CrashMessage& message, Line& line) {
    // The main thread's work is unrelated to a crash in another thread.
    const bool is_main = ::syscall(SYS_gettid) == ::getpid();
    const std::string* op = crash_place.op;
    if (is_main && op != nullptr) line.add(" in ").add(*op);
    if (message.split_ != nullptr && !message.split_->empty()) {
      line.add(" on the split ").add(*message.split_);
    }
    if (message.global_step_ != nullptr) {
      line.add(", after step ").add(*message.global_step_);
    }
    if (is_main) add_examples(line);
    line.add("\n").write();
  }

  static void write_signal(const CrashMessage& message, int number) {
    Line line = beginning();
    if (!message.happened_.empty()) {
      line.add(message.happened_).add("\n").write();
    } else {
      line.add("SIG").add(::sigabbrev_np(number));
      if (number == SIGSEGV) line.add(" (a wrong address, or recursion without end)");
      write_message(message, line);
    }
    write_frames();
    write_remedy(message);
  }

  /// An answer to the first SIGINT: what ends before the process does.
  static void write_what_ends(const CrashMessage& message) {
    Line line = beginning("SIGINT: ");
    if (!message.work_.empty()) {
      line.add("ending ").add(message.work_);
    } else if (*message.split_ == "train" || message.split_->empty()) {
      line.add("finishing step ").add(*message.global_step_ + 1);
    } else {
      line.add("ending the evaluation of ").add(*message.split_);
    }
    if (const std::string* op = crash_place.op) {
      const int64_t seconds = seconds_in_handler() - crash_place.begin_seconds;
      line.add(" (in ").add(*op).add(" for ").add(seconds).add(" s)");
    }
    line.add("; once more ends at once\n").write();
  }

  /// An answer to the second SIGINT.
  static void write_where_it_was(const CrashMessage& message) {
    Line line = beginning("SIGINT again: ended");
    write_message(message, line);
    write_frames();
    write_remedy(message);
  }

  static void answer(int number, bool is_last) {
    const CrashMessage* message = newest.load();
    if (number != SIGINT || message == nullptr || !message->answers_) return;
    if (!is_last) return write_what_ends(*message);
    fatal_signal = number;
    ::signal(SIGALRM, on_time_over);
    ::alarm(kMostSeconds);
    write_where_it_was(*message);
  }

  static void write_exit(const CrashMessage& message, int status) {
    Line line = beginning();
    line.add("exit(").add(int64_t{status}).add(") was called");
    write_message(message, line);
    Line()
        .add("throw an exception to end the training with an error; a hook can stop it\n")
        .write();
    write_remedy(message);
  }

 private:
  /// Begins a new line, below a progress bar.
  static Line beginning(const char* text = "stepop: ") {
    return Line().add(::isatty(STDERR_FILENO) != 0 ? "\n" : "").add(text);
  }
  static void write_remedy(const CrashMessage& message) {
    if (!message.remedy_.empty()) Line().add(message.remedy_).add("\n").write();
  }
};

namespace {

/// Some code called exit() during a CrashMessage's lifetime: the stack is not unwound, so nothing
/// was saved, and the status must not mean success.
void on_early_exit(int status, void* /*unused*/) {
  const CrashMessage* message = newest.load();
  if (message == nullptr) return;
  std::fflush(nullptr);
  CrashHandler::write_exit(*message, status);
  ::_exit(status == 0 ? 1 : status);
}

extern "C" void on_fatal_signal(int number) {
  while (is_crashing.test_and_set()) ::pause();  // another thread handles it and ends the process
  fatal_signal = number;
  ::signal(SIGALRM, on_time_over);
  ::alarm(kMostSeconds);
  if (const CrashMessage* message = newest.load()) CrashHandler::write_signal(*message, number);
  end_by(number);
}

void install_handlers() {
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = on_fatal_signal;
  action.sa_flags = SA_ONSTACK;
  for (const int number : kFatal) sigaddset(&action.sa_mask, number);
  for (size_t i = 0; i < kFatal.size(); ++i) {
    ::sigaction(kFatal[i], nullptr, &old_actions[i]);
    is_ours[i] = old_actions[i].sa_handler == SIG_DFL;
    if (is_ours[i]) ::sigaction(kFatal[i], &action, nullptr);
  }
}

}  // namespace

CrashMessage::CrashMessage(std::string happened)
    : happened_(std::move(happened)), before_(newest.exchange(this)) {
  if (before_ == nullptr) {
    install_handlers();
    SignalGuard::set_listener(CrashHandler::answer);
  }
  [[maybe_unused]] static const int kWatched = ::on_exit(on_early_exit, nullptr);
}

CrashMessage::~CrashMessage() {
  newest = before_;
  if (before_ == nullptr) SignalGuard::set_listener(nullptr);
  for (size_t i = 0; before_ == nullptr && i < kFatal.size(); ++i) {
    if (is_ours[i]) ::sigaction(kFatal[i], &old_actions[i], nullptr);
  }
}

void CrashMessage::set_place(const int64_t& global_step, const std::string& split, bool answers,
                             std::string work) {
  global_step_ = &global_step;
  split_ = &split;
  answers_ = answers;
  work_ = std::move(work);
}

void CrashMessage::set_remedy(std::string text) { remedy_ = std::move(text); }

}  // namespace stepop
