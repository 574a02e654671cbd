#include "runtime/core/base/name_pattern.h"

#include <cctype>
#include <cstddef>
#include <utility>

namespace stepop {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

/// Follows all paths through the states at once: no state is visited twice at the same place in the
/// name.
class NamePattern::Search {
 public:
  Search(const NamePattern& pattern, std::string_view name) : pattern_(pattern), name_(name) {}

  /// Whether a match begins between the places `first` and `last`, inclusive.
  bool run(int32_t start, size_t first, size_t last) {
    std::vector<bool> seen(pattern_.states_.size() * (name_.size() + 1), false);
    std::vector<std::pair<int32_t, size_t>> waiting;
    for (size_t place = first; place <= last; ++place) {
      waiting.emplace_back(start, place);
      while (!waiting.empty()) {
        const auto [index, at] = waiting.back();
        waiting.pop_back();
        const size_t key = static_cast<size_t>(index) * (name_.size() + 1) + at;
        if (seen[key]) continue;
        seen[key] = true;
        const State& state = pattern_.states_[static_cast<size_t>(index)];
        if (state.kind == Kind::kMatch) return true;
        if (state.kind == Kind::kSplit) waiting.emplace_back(state.other, at);
        if (passes(state, index, at)) {
          waiting.emplace_back(state.next, at + (state.kind == Kind::kSet ? 1 : 0));
        }
      }
    }
    return false;
  }

 private:
  bool passes(const State& state, int32_t index, size_t at) {
    switch (state.kind) {
      case Kind::kSet:
        return at < name_.size() && pattern_.sets_[static_cast<size_t>(state.set)].test(
                                        static_cast<unsigned char>(name_[at]));
      case Kind::kBegin:
        return at == 0;
      case Kind::kEnd:
        return at == name_.size();
      case Kind::kWordEdge:
        return is_word_edge(at);
      case Kind::kNoWordEdge:
        return !is_word_edge(at);
      case Kind::kLook: {
        // The result only depends on the place.
        const auto [known, is_new] = looked_.try_emplace({index, at}, false);
        if (is_new) {
          const bool found = run(state.other, at, at);
          looked_[{index, at}] = found;
          return found != state.is_negative;
        }
        return known->second != state.is_negative;
      }
      default:
        return true;
    }
  }

  bool is_word_edge(size_t at) const {
    const bool before = at > 0 && is_word(name_[at - 1]);
    const bool behind = at < name_.size() && is_word(name_[at]);
    return before != behind;
  }

  const NamePattern& pattern_;
  std::string_view name_;
  std::map<std::pair<int32_t, size_t>, bool> looked_;
};

bool NamePattern::is_in(std::string_view name) const {
  return Search(*this, name).run(start_, 0, name.size());
}

}  // namespace stepop
