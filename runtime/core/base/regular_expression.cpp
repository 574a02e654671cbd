#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/core/base/regular_expression.h"

#include <fmt/format.h>
#include <pcre2.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <new>

#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// At one place of a text; a step takes about 20 ns.
constexpr uint32_t kMostSteps = 1'000'000;
/// KiB, in which PCRE2 keeps the ways that are still to be tried.
constexpr uint32_t kMostMemory = 100'000;
/// Bytes of address space, in which machine code does so; memory is taken when it is needed.
constexpr size_t kMostStack = 16 << 20;

/// The places that a timed search tries between two looks at the clock, and how long a step is. A
/// usual search takes less than a step for each byte.
constexpr size_t kTimedPlaces = 64;
constexpr int64_t kNanosecondsOfStep = 10;

int64_t processor_nanoseconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Free {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

template <class T>
std::unique_ptr<T, Free> owned(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return std::unique_ptr<T, Free>(made);
}

std::string pcre2_message(int number) {
  std::array<PCRE2_UCHAR, 256> text = {};
  pcre2_get_error_message(number, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR bytes_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

/// Where a search puts what it found.
class MatchSpace {
 public:
  explicit MatchSpace(uint32_t groups)
      : context_(owned(pcre2_match_context_create(nullptr))),
        data_(owned(pcre2_match_data_create(groups, nullptr))) {
    pcre2_set_heap_limit(context_.get(), kMostMemory);
  }

  /// With a stack for machine code, which is the thread's own.
  static MatchSpace& of_thread() {
    static thread_local MatchSpace space = [] {
      MatchSpace made(1);
      made.stack_.reset(pcre2_jit_stack_create(16 * 1024, kMostStack, nullptr));
      if (made.stack_ != nullptr) {  // else there is no machine code on this machine
        pcre2_jit_stack_assign(made.context_.get(), nullptr, made.stack_.get());
      }
      return made;
    }();
    return space;
  }

  /// PCRE2's result, of matches that begin from `from` to `last`.
  int match(const pcre2_code* code, std::string_view text, size_t from, size_t last,
            uint32_t options, uint32_t most_steps) {
    pcre2_set_match_limit(context_.get(), most_steps);
    pcre2_set_offset_limit(context_.get(), last);
    return pcre2_match(code, bytes_of(text), text.size(), from, options, data_.get(),
                       context_.get());
  }

  RegularExpression::Place place(uint32_t group = 0) const {
    const PCRE2_SIZE* places = pcre2_get_ovector_pointer(data_.get());
    return {places[2 * group], places[2 * group + 1]};
  }

 private:
  std::unique_ptr<pcre2_match_context, Free> context_;
  std::unique_ptr<pcre2_match_data, Free> data_;
  std::unique_ptr<pcre2_jit_stack, Free> stack_;
};

[[noreturn]] void fail_large(const char* what, std::string_view text) {
  throw Error(
      fmt::format("the regular expression takes too {} for a text of {} bytes", what, text.size()));
}

/// Returns whether a search found something.
bool is_match(int result, std::string_view text) {
  if (result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT) {
    fail_large("many steps", text);
  }
  if (result == PCRE2_ERROR_HEAPLIMIT || result == PCRE2_ERROR_JIT_STACKLIMIT) {
    fail_large("much memory", text);
  }
  if (result < 0 && result != PCRE2_ERROR_NOMATCH) {
    throw Error(fmt::format("a regular expression fails: {}", pcre2_message(result)));
  }
  return result >= 0;
}

}  // namespace

RegularExpressionError::RegularExpressionError(const std::string& message, size_t at)
    : Error(fmt::format("{}, at character {}", message, at + 1)), problem(message), place(at) {}

RegularExpression::RegularExpression(std::string_view pattern, Kind kind, bool is_timed)
    : is_timed_(is_timed) {
  const auto context = owned(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const uint32_t options = kind == Kind::kUnicode
                               ? PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE
                               : PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_DOLLAR_ENDONLY;
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(bytes_of(pattern), pattern.size(),
                                   options | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT,
                                   &error, &place, context.get());
  if (code == nullptr) {
    if (error == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
    throw RegularExpressionError(pcre2_message(error), place);
  }
  code_ = std::shared_ptr<const pcre2_code>(
      code, [](const pcre2_code* unused) { pcre2_code_free(const_cast<pcre2_code*>(unused)); });
  // Where machine code cannot be made, PCRE2 interprets the expression, and counts fewer steps.
  if (kind == Kind::kUnicode && pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) != 0) is_timed_ = true;
}

bool RegularExpression::is_in(std::string_view text) const {
  return is_match(MatchSpace(1).match(code_.get(), text, 0, PCRE2_UNSET, 0, kMostSteps), text);
}

std::optional<std::vector<std::string>> RegularExpression::groups_in(std::string_view text) const {
  uint32_t groups = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
  MatchSpace space(groups + 1);
  if (!is_match(space.match(code_.get(), text, 0, PCRE2_UNSET, 0, kMostSteps), text))
    return std::nullopt;
  std::vector<std::string> found;
  for (uint32_t i = 0; i <= groups; ++i) {
    const Place place = space.place(i);
    const bool is_there = place.first <= place.end && place.end <= text.size();
    found.emplace_back(is_there ? text.substr(place.first, place.end - place.first) : "");
  }
  return found;
}

/// PCRE2's result, of matches that begin from `from` to `last`.
int RegularExpression::search(std::string_view text, size_t from, size_t last, uint32_t most_steps,
                              int64_t& budget) const {
  MatchSpace& space = MatchSpace::of_thread();
  if (!is_timed_) {
    return space.match(code_.get(), text, from, last, PCRE2_NO_UTF_CHECK, most_steps);
  }
  const int64_t begin = processor_nanoseconds();
  const int result = space.match(code_.get(), text, from, last, PCRE2_NO_UTF_CHECK, most_steps);
  budget -= std::max<int64_t>(0, processor_nanoseconds() - begin) / kNanosecondsOfStep;
  if (budget < 0) fail_large("many steps", text);
  return result;
}

std::optional<RegularExpression::Place> RegularExpression::find(std::string_view text, size_t from,
                                                                int64_t& budget) const {
  while (true) {
    const size_t last = is_timed_ ? from + kTimedPlaces : PCRE2_UNSET;
    const int result = search(text, from, last, kFewSteps, budget);
    if (result == PCRE2_ERROR_MATCHLIMIT) {
      const auto found = find_slowly(text, from, budget);
      if (found || from > text.size()) return found;
    } else if (is_match(result, text)) {
      return MatchSpace::of_thread().place();
    } else if (last >= text.size()) {
      return std::nullopt;
    } else {
      for (from = last + 1; from < text.size() && is_inside_character(text[from]);) ++from;
    }
  }
}

/// Tries each place by itself, with its steps counted, and ends behind the first place that takes
/// more than kFewSteps.
std::optional<RegularExpression::Place> RegularExpression::find_slowly(std::string_view text,
                                                                       size_t& from,
                                                                       int64_t& budget) const {
  for (bool is_costly = false; !is_costly && from <= text.size();) {
    uint32_t steps = kFewSteps;
    int result = 0;
    while (true) {
      result = search(text, from, from, steps, budget);
      if (result != PCRE2_ERROR_MATCHLIMIT) break;
      is_costly = true;
      budget -= steps;
      steps *= 4;
      if (budget < 0 || steps > 1'000'000'000) fail_large("many steps", text);
    }
    if (is_match(result, text)) return MatchSpace::of_thread().place();
    do ++from;
    while (from < text.size() && is_inside_character(text[from]));
  }
  return std::nullopt;
}

}  // namespace stepop
