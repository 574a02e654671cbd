#include "runtime/data/text/split_pattern.h"

#include <fmt/format.h>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The limit for all searches in a text: a usual pattern takes about 20 steps for each byte. A
/// pattern that needs more than this has a number of ways that grows with a power of the text's
/// length.
constexpr int64_t kStepsForAByte = 1000;
constexpr int64_t kStepsForAText = 10'000'000;

}  // namespace

std::optional<size_t> SplitPattern::match(std::string_view text, size_t at, size_t first_step,
                                          int64_t& budget) const {
  /// Where the match continues when the current way fails.
  struct Way {
    size_t step;
    size_t at;
    size_t least_at;  ///< For a repetition: it gives back one character at a time, down to this
                      ///< place.
  };
  std::vector<Way> ways;
  size_t i = first_step;
  while (true) {
    if (--budget < 0) {
      throw Error(fmt::format("the pattern {} takes too many steps for a text of {} bytes",
                              shortened(pattern_, 200), text.size()));
    }
    const Step& step = steps_[i];
    bool fails = false;
    switch (step.kind) {
      case Step::Kind::kSet: {
        size_t behind = at;
        fails = at >= text.size() || !sets_[step.a].contains(next_character(text, behind));
        at = behind;
        ++i;
        break;
      }
      case Step::Kind::kRepeat:
      case Step::Kind::kRepeatOnly: {
        const CharacterSet& set = sets_[step.a];
        uint32_t count = 0;
        size_t least_at = at;
        while (count < step.most && at < text.size()) {
          size_t behind = at;
          if (!set.contains(next_character(text, behind))) break;
          at = behind;
          if (++count == step.least) least_at = at;
        }
        budget -= count / 16;
        fails = count < step.least;
        ++i;
        if (!fails && at > least_at && step.kind == Step::Kind::kRepeat) {
          ways.push_back({i, at, least_at});
        }
        break;
      }
      case Step::Kind::kFork:
        ways.push_back({step.b, at, at});
        i = step.a;
        break;
      case Step::Kind::kJump:
        i = step.a;
        break;
      case Step::Kind::kAhead:
      case Step::Kind::kNotAhead:
      case Step::Kind::kOnly: {
        const auto end = match(text, at, i + 1, budget);
        fails = end.has_value() == (step.kind == Step::Kind::kNotAhead);
        if (!fails && step.kind == Step::Kind::kOnly) at = *end;
        i = step.a;
        break;
      }
      case Step::Kind::kEnd:
        return at;
    }
    if (!fails) continue;
    if (ways.empty()) return std::nullopt;
    Way& way = ways.back();
    i = way.step;
    if (way.at > way.least_at) {
      do --way.at;
      while (is_inside_character(text[way.at]));
      at = way.at;
      if (way.at == way.least_at) ways.pop_back();
    } else {
      at = way.at;
      ways.pop_back();
    }
  }
}

int64_t SplitPattern::budget_for(std::string_view text) {
  return kStepsForAText + kStepsForAByte * static_cast<int64_t>(text.size());
}

std::optional<std::pair<size_t, size_t>> SplitPattern::find(std::string_view text, size_t from,
                                                            int64_t& budget) const {
  for (size_t at = from; at <= text.size(); ++at) {
    if (at < text.size() && is_inside_character(text[at])) continue;
    if (const auto end = match(text, at, 0, budget)) return std::pair(at, *end);
  }
  return std::nullopt;
}

}  // namespace stepop
