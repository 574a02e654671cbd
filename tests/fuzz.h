#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/random.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace stepop {

/// STEPOP_FUZZ_COUNT, or `fallback`: how many inputs a test tries. `make fuzz` sets it.
inline uint64_t fuzz_count(uint64_t fallback) {
  const char* text = std::getenv("STEPOP_FUZZ_COUNT");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

/// STEPOP_FUZZ_SEED, which repeats a test; else always the same.
inline uint64_t fuzz_seed() {
  const char* text = std::getenv("STEPOP_FUZZ_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

/// STEPOP_FUZZ_FIRST: the first case that is tried, to repeat a case alone.
inline uint64_t fuzz_first() {
  const char* text = std::getenv("STEPOP_FUZZ_FIRST");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

/// Watches over the cases of a fuzz test. A case that ends in a signal, that takes more than 20 s
/// of the processor, or a minute, or more than 2 GB of memory ends the test, and its kind, seed and
/// number are on the standard error. One of them lives at a time.
class FuzzWatch {
 public:
  FuzzWatch(const char* kind, uint64_t seed) {
    kind_ = kind;
    seed_ = seed;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback([] { say(" ended here\n"); });
    const std::vector<int> watched = {SIGALRM, SIGPROF};
#else
    const std::vector<int> watched = {SIGALRM, SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#endif
    for (const int number : watched) {
      struct sigaction action = {};
      struct sigaction before = {};
      action.sa_handler = die;
      action.sa_flags = SA_RESETHAND | SA_NODEFER;
      ::sigaction(number, &action, &before);
      before_.emplace_back(number, before);
    }
  }
  ~FuzzWatch() {
    set_timers(0, 0);
    for (const auto& [number, action] : before_) ::sigaction(number, &action, nullptr);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback(nullptr);
#endif
  }
  FuzzWatch(const FuzzWatch&) = delete;
  FuzzWatch& operator=(const FuzzWatch&) = delete;

  /// Runs one case.
  template <class Case>
  void run(uint64_t number, const Case& one) {
    if (number > 0 && number % 1000 == 0) {
      std::fprintf(stderr, "fuzz: %s, seed %" PRIu64 ", case %" PRIu64 "\n", kind_, seed_, number);
    }
    case_ = number;
    constexpr int64_t kMostBytes = 2'000'000'000;
    std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak of the memory
    const int64_t before = memory("VmRSS:");
    set_timers(20, 60);
    one();
    set_timers(0, 0);
    const int64_t taken = memory("VmHWM:") - before;
    if (taken <= kMostBytes) return;
    say(" took too much memory\n");
    REQUIRE(taken <= kMostBytes);
  }

 private:
  static void set_timers(int processor_seconds, int seconds) {
    itimerval timer = {};
    timer.it_value.tv_sec = processor_seconds;
    ::setitimer(ITIMER_PROF, &timer, nullptr);
    timer.it_value.tv_sec = seconds;
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }

  static void die(int number) {
    say(number == SIGALRM || number == SIGPROF ? " takes too long\n" : " ended in a signal\n");
    ::raise(number);
  }

  /// Only what a signal's handler may call.
  static void say(const char* what) {
    char text[200] = "\nfuzz: ";
    const auto append = [&](const char* more) {
      std::strncat(text, more, sizeof(text) - std::strlen(text) - 1);
    };
    const auto append_number = [&](uint64_t value) {
      char digits[24] = "";
      char* at = digits + sizeof(digits) - 1;
      do {
        *--at = static_cast<char>('0' + value % 10);
      } while ((value /= 10) > 0);
      append(at);
    };
    append(kind_);
    append(", seed ");
    append_number(seed_);
    append(", case ");
    append_number(case_);
    append(what);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  }

  /// In bytes.
  static int64_t memory(const std::string& key) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(key)) return 1024 * std::strtoll(line.c_str() + key.size(), nullptr, 10);
    }
    return 0;
  }

  inline static const char* kind_ = "";
  inline static uint64_t seed_ = 0;
  inline static volatile uint64_t case_ = 0;
  std::vector<std::pair<int, struct sigaction>> before_;
};

/// Breaks files of any binary format.
class ByteMutator {
 public:
  /// `words` are what a format consists of: signatures, numbers, separators. `focus` are texts,
  /// such as signatures, near which half of all changes are made.
  ByteMutator(uint64_t seed, std::vector<std::string> words, std::vector<std::string> focus = {})
      : random_(seed), words_(std::move(words)), focus_(std::move(focus)) {}

  uint64_t below(uint64_t end) { return end == 0 ? 0 : random_() % end; }

  /// `bytes` with one to four things done to it.
  std::string mutate(std::string bytes) {
    for (uint64_t count = 1 + below(4); count > 0 && !bytes.empty(); --count) change(bytes);
    return bytes;
  }

 private:
  size_t place(const std::string& bytes) {
    if (!focus_.empty() && below(2) == 0) {
      size_t found = bytes.find(focus_[below(focus_.size())], below(bytes.size()));
      if (found == std::string::npos) found = 0;
      return std::min<size_t>(found + below(200), bytes.size() - 1);
    }
    return below(bytes.size());
  }

  /// A number that a format may not expect, in 1, 2, 4 or 8 bytes of either order.
  std::string number(size_t file_size) {
    const uint64_t numbers[] = {0,
                                1,
                                2,
                                16,
                                255,
                                65'535,
                                uint64_t{1} << 20,
                                uint64_t{1} << 31,
                                (uint64_t{1} << 32) - 1,
                                uint64_t{1} << 40,
                                uint64_t{1} << 60,
                                uint64_t{1} << 63,
                                ~uint64_t{0},
                                file_size,
                                file_size - 1,
                                below(file_size + 1),
                                below(file_size + 1) & ~uint64_t{7}};
    const uint64_t value = numbers[below(std::size(numbers))];
    std::string bytes(reinterpret_cast<const char*>(&value), size_t{1} << below(4));
    if (below(2) == 0) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  }

  void change(std::string& bytes) {
    const size_t at = place(bytes);
    const size_t size = below(std::min<size_t>(bytes.size() - at, 40) + 1);
    switch (below(10)) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 3:
      case 4: {
        const std::string value = number(bytes.size());
        bytes.replace(at, value.size(), value);
        break;
      }
      case 5:
        if (!words_.empty()) {
          const std::string& word = words_[below(words_.size())];
          bytes.replace(at, below(2) == 0 ? word.size() : 0, word);
        }
        break;
      case 6: {  // what stands elsewhere
        const std::string other = bytes.substr(place(bytes), 8 * (1 + below(6)));
        bytes.replace(at, other.size(), other);
        break;
      }
      case 7:
        if (below(2) == 0) {
          bytes.resize(at);
        } else {
          bytes.append(size, static_cast<char>(below(256)));
        }
        break;
      case 8:
        if (below(2) == 0) {
          bytes.erase(at, size);
        } else {
          bytes.insert(at, bytes.substr(place(bytes), size));
        }
        break;
      default:
        bytes.replace(at, size, size, below(2) == 0 ? '\0' : '\xff');
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
  std::vector<std::string> focus_;
};

}  // namespace stepop
