#include "runtime/code/capture_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "runtime/code/cpp_tokens.h"

namespace stepop {
namespace {

/// The members of StepOps in their order.
constexpr std::array<std::string_view, 6> kMembers = {"train_op",  "log_op",  "eval_op",
                                                      "train_ops", "log_ops", "eval_ops"};

/// Brackets within brackets are followed so far, whatever the source.
constexpr int kDeepest = 100;

/// Positions in the tokens: of `[`, `]`, and the closing `}` of the body.
struct Lambda {
  size_t begin, captures_end, end;
};

/// Counts how deep a function is in itself.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

class CaptureCheck {
 public:
  CaptureCheck(std::string_view source, const std::string& file) : code_(source), file_(file) {}

  std::vector<CaptureFinding> run() {
    for (size_t i = 0; i < code_.size(); ++i) {
      if (at(i).is("step_op") && at(i + 1).is("(")) enter_step_op(i);
      if (is_member(i)) check_member(i);
      if (at(i).kind == CppToken::Kind::kText && at(i + 1).is(",")) check_pair(i);
      if (at(i).is_one_of({"TrainOp", "LogOp", "EvalOp"})) check_type(i);
      if (at(i).is("StepOps")) check_step_ops(at(i + 1).is_name() ? i + 2 : i + 1);
      if (at(i).is("return") && i < step_op_end_) check_step_ops(i + 1);
    }
    std::vector<CaptureFinding> findings;
    for (auto& entry : found_) findings.push_back(std::move(entry.second));
    return findings;
  }

 private:
  const CppToken& at(size_t i) const { return code_.at(i); }

  std::optional<Lambda> lambda_at(size_t i) const {
    if (!at(i).is("[") || at(i + 1).is("[")) return std::nullopt;
    const size_t captures_end = code_.behind(i) - 1;
    size_t body = captures_end + 1;
    while (body < code_.size() && !at(body).is("{")) {
      if (at(body).is("<")) {
        body = code_.behind_angles(body);
      } else if (at(body).is_one_of({"(", "["})) {
        body = code_.behind(body);
      } else if (at(body).is_name() || at(body).is_one_of({"->", "::", "*", "&"})) {
        ++body;
      } else {
        return std::nullopt;
      }
    }
    if (body >= code_.size()) return std::nullopt;
    return Lambda{i, captures_end, code_.behind(body) - 1};
  }

  /// Whether a member of a StepOps, or of what may be one, is named here.
  bool is_member(size_t i) const {
    if (i == 0 || !at(i).is_name() || !at(i - 1).is_one_of({".", "->"})) return false;
    return at(i).text.ends_with("_op") || at(i).text.ends_with("_ops");
  }

  /// `.train_op = ...`, `ops.log_ops = {...}`, `ops.log_ops["sample_op"] = ...`,
  /// `ops.log_ops.set("sample_op", ...)`.
  void check_member(size_t i) {
    std::string name(at(i).text);
    bool is_map = name.ends_with("_ops");
    size_t value = i + 1;
    if (is_map && at(value).is("[")) {
      if (at(value + 1).kind == CppToken::Kind::kText) name = unquoted(at(value + 1));
      value = code_.behind(value);
      is_map = false;
    } else if (is_map && at(value).is(".") && at(value + 2).is("(")) {
      return check_elements(value + 2, false, name);
    }
    if (at(value).is("=") && !at(value + 1).is("=")) {
      ++value;
    } else if (!at(value).is("{")) {
      return;
    }
    if (!is_map) return check_value(value, name);
    while (value < code_.size() && !at(value).is_one_of({"{", ",", ";", "}"})) ++value;
    if (at(value).is("{")) check_elements(value, false, name);
  }

  /// `{"sample_op", ...`.
  void check_pair(size_t i) {
    const std::string name = unquoted(at(i));
    if (i > 0 && at(i - 1).is("{") && name.find("_op") != std::string::npos) {
      check_value(i + 2, name);
    }
  }

  /// `TrainOp(...)`, `LogOp log = ...`, and functions that return one.
  void check_type(size_t i) {
    const std::string name = at(i).is("TrainOp") ? "train_op"
                             : at(i).is("LogOp") ? "log_op"
                                                 : "eval_op";
    size_t next = i + 1;
    if (at(next).is_one_of({"(", "{"})) return check_value(next, name);
    while (at(next).is_name() || at(next).is("::")) ++next;
    if (next == i + 1) return;
    if (at(next).is("=") || at(next).is("{")) check_value(next + 1, name);
    if (!at(next).is("(")) return;
    check_value(next, name);
    size_t body = code_.behind(next);
    while (at(body).is_name()) ++body;  // const, override, ...
    if (at(body).is("{")) check_returns(body, name);
  }

  /// What the function with this body returns.
  void check_returns(size_t body, const std::string& name) {
    const size_t end = code_.behind(body);
    for (size_t i = body; i < end; ++i) {
      if (at(i).is("return")) check_value(i + 1, name);
      if (const auto lambda = lambda_at(i)) i = lambda->end;
    }
  }

  void enter_step_op(size_t i) {
    size_t body = code_.behind(i + 1);
    while (at(body).is_name() || at(body).is_one_of({"->", "::"})) ++body;
    if (at(body).is("{")) step_op_end_ = code_.behind(body);
  }

  /// `{train op, log op, ...}`, where each may be left away from the end.
  void check_step_ops(size_t i) {
    if (at(i).is("=")) ++i;
    if (at(i).is("{") && !at(i + 1).is(".")) check_elements(i, true, "");
  }

  /// The elements of a list in brackets, each named by its place in a StepOps, by a text before it
  /// as in `{"sample_op", ...}`, or else by `name`.
  void check_elements(size_t open, bool by_place, std::string name) {
    if (depth_ > kDeepest) return;
    const Deeper deeper(depth_);
    const size_t end = code_.behind(open) - 1;
    size_t place = 0;
    for (size_t i = open + 1; i < end; i = code_.expression_end(i) + 1) {
      if (by_place && place < kMembers.size()) name = kMembers[place++];
      if (at(i).kind == CppToken::Kind::kText) name = unquoted(at(i));
      if (at(i).is("{") && (!by_place || name.ends_with("_ops"))) {
        check_elements(i, false, name);
      } else {
        check_value(i, name);
      }
    }
  }

  /// The expression that begins at `i`, which becomes the op `name`.
  void check_value(size_t i, const std::string& name) {
    check_value(i, name, code_.expression_end(i));
  }
  void check_value(size_t i, const std::string& name, size_t end) {
    if (depth_ > kDeepest) return;
    const Deeper deeper(depth_);
    for (size_t k = i; k < end; k = code_.next(k)) {
      if (!at(k).is("?")) continue;
      const size_t other = other_branch(k + 1, end);
      check_value(k + 1, name, other);
      if (other < end) check_value(other + 1, name, end);
      return;
    }
    if (const auto lambda = lambda_at(i)) {
      const bool is_called = at(lambda->end + 1).is("(");
      if (!is_called) check_lambda(*lambda, name);
      return;
    }
    if (at(i).is_one_of({"(", "{"})) return check_value(i + 1, name);
    size_t last = i;
    while (at(last).is_name() && at(last + 1).is("::")) last += 2;
    if (!at(last).is_name()) return;
    const bool wraps = at(last).is_one_of({"move", "function", "TrainOp", "LogOp", "EvalOp"});
    const size_t next = at(last + 1).is("<") ? code_.behind_angles(last + 1) : last + 1;
    if (wraps && at(next).is_one_of({"(", "{"})) return check_value(next + 1, name);
    if (last == i && next == end) check_variable(i, name);
  }

  /// The `:` of a `?` whose first branch begins at `i`.
  size_t other_branch(size_t i, size_t end) const {
    for (int depth = 0; i < end; i = code_.next(i)) {
      if (at(i).is("?")) ++depth;
      if (at(i).is(":") && --depth < 0) return i;
    }
    return end;
  }

  /// The lambda that the variable used at `use` was given, in the scopes around it.
  void check_variable(size_t use, const std::string& name) {
    int depth = 0;
    for (size_t i = use; i-- > 0;) {
      if (at(i).is("}")) ++depth;
      if (at(i).is("{") && depth > 0) --depth;
      const bool is_it = depth == 0 && at(i).is_name() && at(i).text == at(use).text;
      const auto lambda =
          is_it && at(i + 1).is_one_of({"=", "{", "("}) ? lambda_at(i + 2) : std::nullopt;
      if (!lambda) continue;
      if (!at(lambda->end + 1).is("(")) check_lambda(*lambda, name);
      return;
    }
  }

  void check_lambda(const Lambda& lambda, const std::string& op) {
    std::vector<std::string> by_reference, by_value;
    bool takes_all = false, refers_to_all = false, takes_this = false;
    for (size_t i = lambda.begin + 1; i < lambda.captures_end; i = code_.expression_end(i) + 1) {
      const size_t end = code_.expression_end(i);
      if (at(i).is("=")) {
        takes_all = true;
      } else if (at(i).is("&") && i + 1 == end) {
        refers_to_all = true;
      } else if (at(i).is("this")) {
        takes_this = true;
      } else if (at(i).is("&")) {
        const size_t name = at(i + 1).is("...") ? i + 2 : i + 1;
        by_reference.emplace_back(at(name).text);
        by_value.push_back(text_of(i + 1, end));
      } else {
        by_value.push_back(text_of(i, end));
      }
    }
    if (!refers_to_all && by_reference.empty()) return;
    if (takes_all || refers_to_all) {
      takes_all = takes_this = true;
      std::erase_if(by_value, [](const auto& text) { return text.find('=') == std::string::npos; });
    }
    if (takes_this) by_value.insert(by_value.begin(), "this");
    if (takes_all) by_value.insert(by_value.begin(), "=");
    const CppToken& place = at(lambda.begin);
    const std::string what = refers_to_all ? "" : fmt::format("{} ", fmt::join(by_reference, ", "));
    found_.emplace(
        lambda.begin,
        CaptureFinding{
            place.line, place.column,
            fmt::format("{}:{}: {} captures {}by reference ({}): step_op has returned "
                        "when it runs, and what it refers to is gone: capture by value, "
                        "[{}]",
                        file_, place.line, op, what, text_of(lambda.begin, lambda.captures_end + 1),
                        fmt::join(by_value, ", "))});
  }

  /// The source of tokens [begin, end), without what lies between them but one space.
  std::string text_of(size_t begin, size_t end) const {
    std::string text;
    for (size_t i = begin; i < end; ++i) {
      const char* behind_last = i > begin ? at(i - 1).text.data() + at(i - 1).text.size() : nullptr;
      if (behind_last != nullptr && behind_last != at(i).text.data()) text += ' ';
      text += at(i).text;
    }
    return text;
  }

  static std::string unquoted(const CppToken& token) {
    const std::string_view text = token.text;
    return std::string(text.size() < 2 ? text : text.substr(1, text.size() - 2));
  }

  CppCode code_;
  const std::string& file_;
  size_t step_op_end_ = 0;
  int depth_ = 0;
  std::map<size_t, CaptureFinding> found_;  ///< By the position of the `[`.
};

}  // namespace

std::vector<CaptureFinding> check_captures(std::string_view source, const std::string& file) {
  return CaptureCheck(source, file).run();
}

}  // namespace stepop
