#include "runtime/core/base/name_pattern.h"

#include <fmt/format.h>

#include <cctype>
#include <cstddef>
#include <map>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr size_t kMostStates = 20'000;
constexpr size_t kMostCompiled = 10 * kMostStates;
constexpr int kMostGroups = 200;
constexpr int kMostRepeats = 1'000;
constexpr int kMostLooks = 20;

}  // namespace

/// Compiles a pattern from its end to its beginning, so that each part knows the state that follows
/// it. A part that is repeated is compiled once for each repetition.
class NamePatternParser {
 public:
  NamePatternParser(std::string_view text, NamePattern& pattern) : text_(text), pattern_(pattern) {}

  void parse() {
    const Node whole = choice(0);
    if (at_ < text_.size()) fail("\")\" ends no group");
    pattern_.start_ = compile(whole, add({.kind = Kind::kMatch}));
  }

 private:
  using Kind = NamePattern::Kind;
  using State = NamePattern::State;
  using Set = NamePattern::Set;

  /// A part of the pattern.
  struct Node {
    enum class Type { kState, kSequence, kChoice, kRepeat, kLook };
    Type type = Type::kSequence;
    State state = {};  ///< For kState; `is_negative` also for kLook.
    int least = 0;     ///< For kRepeat.
    int most = 0;      ///< -1: any number.
    std::vector<Node> parts = {};
  };

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(fmt::format("{}, at character {}", problem, at_ + 1));
  }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Node choice(int depth) {
    if (depth > kMostGroups) fail(fmt::format("groups lie more than {} deep", kMostGroups));
    Node node{.type = Node::Type::kChoice};
    do {
      node.parts.push_back(sequence(depth));
    } while (take('|'));
    if (node.parts.size() > 1) return node;
    return std::move(node.parts[0]);
  }

  Node sequence(int depth) {
    Node node{.type = Node::Type::kSequence};
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      bool can_repeat = true;
      Node part = atom(depth, can_repeat);
      node.parts.push_back(repeated(std::move(part), can_repeat));
    }
    return node;
  }

  Node repeated(Node part, bool can_repeat) {
    int least = 0;
    int most = -1;
    const size_t begin = at_;
    if (take('*')) {
    } else if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (take('{')) {
      least = most = number();
      if (take(',')) most = next_is('}') ? -1 : number();
      if (!take('}')) fail("\"}\" is missing");
      if (most >= 0 && most < least) fail("a repetition from more to fewer");
    } else {
      return part;
    }
    if (!can_repeat) {
      at_ = begin;
      fail(fmt::format("nothing that \"{}\" could repeat", text_[at_]));
    }
    take('?');  // lazy: this changes what matches, not whether there is a match
    if (next_is('*') || next_is('+') || next_is('?')) {
      fail(fmt::format("nothing that \"{}\" could repeat", text_[at_]));
    }
    Node node{.type = Node::Type::kRepeat, .least = least, .most = most};
    node.parts.push_back(std::move(part));
    return node;
  }

  int number() {
    int value = 0;
    if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9') fail("expected a number");
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_++] - '0');
      if (value > kMostRepeats) fail(fmt::format("more than {} repetitions", kMostRepeats));
    }
    return value;
  }

  Node assertion(Kind kind, bool& can_repeat) {
    can_repeat = false;
    return {.type = Node::Type::kState, .state = {.kind = kind}};
  }

  Node set_node(const Set& set) {
    const auto [known, is_new] =
        set_places_.try_emplace(set.to_string(), static_cast<int32_t>(pattern_.sets_.size()));
    if (is_new) pattern_.sets_.push_back(set);
    return {.type = Node::Type::kState, .state = {.kind = Kind::kSet, .set = known->second}};
  }

  static Set one(unsigned char c) {
    Set set;
    set.set(c);
    return set;
  }

  Node atom(int depth, bool& can_repeat) {
    const char c = text_[at_++];
    switch (c) {
      case '^':
        return assertion(Kind::kBegin, can_repeat);
      case '$':
        return assertion(Kind::kEnd, can_repeat);
      case '.':
        return set_node(~(one('\n') | one('\r')));
      case '[':
        return set_node(brackets());
      case '(':
        return group(depth, can_repeat);
      case '\\':
        if (take('b')) return assertion(Kind::kWordEdge, can_repeat);
        if (take('B')) return assertion(Kind::kNoWordEdge, can_repeat);
        return set_node(escaped());
      case '*':
      case '+':
      case '?':
      case '{':
        --at_;
        fail(fmt::format("nothing that \"{}\" could repeat", c));
      default:
        return set_node(one(static_cast<unsigned char>(c)));
    }
  }

  Node group(int depth, bool& can_repeat) {
    Node node;
    if (take("?=") || take("?!")) {
      can_repeat = false;
      if (++looks_ > kMostLooks) fail(fmt::format("more than {} of (?= and (?!", kMostLooks));
      const bool is_negative = text_[at_ - 1] == '!';
      node = {.type = Node::Type::kLook,
              .state = {.kind = Kind::kLook, .is_negative = is_negative}};
      node.parts.push_back(choice(depth + 1));
    } else {
      if (!take("?:") && next_is('?')) fail("of groups with \"?\" there are (?:, (?= and (?!");
      node = choice(depth + 1);
    }
    if (!take(')')) fail("\")\" is missing");
    return node;
  }

  static Set class_of(int (*is_in)(int)) {
    Set set;
    for (int c = 0; c < 128; ++c) set.set(static_cast<size_t>(c), is_in(c) != 0);
    return set;
  }

  /// After a backslash.
  Set escaped() {
    if (at_ >= text_.size()) fail("a backslash at the end");
    const char c = text_[at_++];
    const Set word = class_of(std::isalnum) | one('_');
    switch (c) {
      case 'd':
        return class_of(std::isdigit);
      case 'D':
        return ~class_of(std::isdigit);
      case 's':
        return class_of(std::isspace);
      case 'S':
        return ~class_of(std::isspace);
      case 'w':
        return word;
      case 'W':
        return ~word;
      case 't':
        return one('\t');
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one('\0');
      case 'x':
        return one(static_cast<unsigned char>(16 * hex_digit() + hex_digit()));
      default:
        break;
    }
    if (c >= '1' && c <= '9') {
      fail(fmt::format("references to groups, as \\{}, are not supported", c));
    }
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      fail(fmt::format("\\{} is unknown", c));
    }
    return one(static_cast<unsigned char>(c));
  }

  int hex_digit() {
    const char c = at_ < text_.size() ? text_[at_] : ' ';
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) fail("expected two digits after \\x");
    ++at_;
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
  }

  /// After `[`.
  Set brackets() {
    const bool is_negative = take('^');
    Set set;
    while (!take(']')) {
      if (at_ >= text_.size()) fail("\"]\" is missing");
      if (take("[:")) {
        set |= named_class();
        continue;
      }
      const Set first = bracket_item();
      if (first.count() == 1 && next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        const Set last = bracket_item();
        if (last.count() != 1 || last._Find_first() < first._Find_first()) {
          fail("a range that ends before it begins");
        }
        for (size_t c = first._Find_first(); c <= last._Find_first(); ++c) set.set(c);
      } else {
        set |= first;
      }
    }
    return is_negative ? ~set : set;
  }

  Set bracket_item() {
    if (take('\\')) {
      if (take('b')) return one('\b');
      return escaped();
    }
    return one(static_cast<unsigned char>(text_[at_++]));
  }

  Set named_class() {
    static const std::map<std::string_view, int (*)(int)> classes = {
        {"alnum", std::isalnum}, {"alpha", std::isalpha}, {"blank", std::isblank},
        {"cntrl", std::iscntrl}, {"digit", std::isdigit}, {"graph", std::isgraph},
        {"lower", std::islower}, {"print", std::isprint}, {"punct", std::ispunct},
        {"space", std::isspace}, {"upper", std::isupper}, {"xdigit", std::isxdigit}};
    const size_t end = text_.find(":]", at_);
    const auto found =
        end == std::string_view::npos ? classes.end() : classes.find(text_.substr(at_, end - at_));
    if (found == classes.end()) fail("an unknown class of characters");
    at_ = end + 2;
    return class_of(found->second);
  }

  int32_t add(const State& state) {
    if (pattern_.states_.size() >= kMostStates) fail_too_long();
    pattern_.states_.push_back(state);
    return static_cast<int32_t>(pattern_.states_.size() - 1);
  }

  int32_t split(int32_t next, int32_t other) {
    return add({.kind = Kind::kSplit, .next = next, .other = other});
  }

  [[noreturn]] static void fail_too_long() {
    throw Error(
        fmt::format("it has more than {} steps with its repetitions written out", kMostStates));
  }

  /// Returns the first state of `node` when `next` follows the node.
  int32_t compile(const Node& node, int32_t next) {
    // Repetitions of an empty part make no states.
    if (++compiled_ > kMostCompiled) fail_too_long();
    switch (node.type) {
      case Node::Type::kState: {
        State state = node.state;
        state.next = next;
        return add(state);
      }
      case Node::Type::kSequence:
        for (size_t i = node.parts.size(); i > 0; --i) next = compile(node.parts[i - 1], next);
        return next;
      case Node::Type::kChoice: {
        int32_t begin = compile(node.parts.back(), next);
        for (size_t i = node.parts.size() - 1; i > 0; --i) {
          begin = split(compile(node.parts[i - 1], next), begin);
        }
        return begin;
      }
      case Node::Type::kLook: {
        State state = node.state;
        state.other = compile(node.parts[0], add({.kind = Kind::kMatch}));
        state.next = next;
        return add(state);
      }
      case Node::Type::kRepeat:
        break;
    }
    const Node& part = node.parts[0];
    if (node.most < 0) {
      const int32_t loop = split(-1, next);
      const int32_t begin = compile(part, loop);
      pattern_.states_[static_cast<size_t>(loop)].next = begin;
      next = loop;
    }
    for (int i = node.least; i < node.most; ++i) next = split(compile(part, next), next);
    for (int i = 0; i < node.least; ++i) next = compile(part, next);
    return next;
  }

  std::string_view text_;
  NamePattern& pattern_;
  size_t at_ = 0;
  std::map<std::string, int32_t> set_places_;
  int looks_ = 0;
  size_t compiled_ = 0;
};

NamePattern::NamePattern(const std::string& pattern) {
  if (pattern.size() > kMostBytes) {
    throw Error(fmt::format("it has {} characters; {} at most", pattern.size(), kMostBytes));
  }
  NamePatternParser(pattern, *this).parse();
}

}  // namespace stepop
