#include "runtime/tools/code/capture_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "runtime/core/base/regular_expression.h"

namespace stepop {
namespace {

constexpr size_t kMostBefore = 400;  // characters before a lambda that are checked

/// The groups of the first match, the whole of it first; none for a search that takes too long, as
/// a check ends no compile.
std::optional<std::vector<std::string>> found_in(const std::string& code,
                                                 const RegularExpression& expression) {
  try {
    return expression.groups_in(code);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_one_of(char c, std::string_view those) { return those.find(c) != std::string_view::npos; }

/// The end of the comment, text or preprocessor line that begins at `i`; `i` if none begins there.
size_t end_of_no_code(const std::string& code, size_t i) {
  const auto behind = [&](const std::string& mark, size_t from) {
    const size_t found = code.find(mark, from);
    return found == std::string::npos ? code.size() : found + mark.size();
  };
  const size_t before = i == 0 ? std::string::npos : code.find_last_not_of(" \t", i - 1);
  const bool begins_line = before == std::string::npos || code[before] == '\n';
  size_t end = i;
  if (code.compare(i, 2, "/*") == 0) return behind("*/", i + 2);
  if (code.compare(i, 2, "//") == 0 || (code[i] == '#' && begins_line)) {
    while (end < code.size() && (code[end] != '\n' || code[end - 1] == '\\')) ++end;
  } else if (code.compare(i, 2, "R\"") == 0) {
    const size_t open = behind("(", i);
    if (open < code.size()) return behind(")" + code.substr(i + 2, open - i - 3) + "\"", open);
  } else if (code[i] == '"' || (code[i] == '\'' && !(i > 0 && std::isalnum(code[i - 1]) != 0))) {
    while (++end < code.size() && code[end] != code[i] && code[end] != '\n') {
      if (code[end] == '\\') ++end;
    }
    return std::min(end + 1, code.size());
  }
  return end;
}

/// The source with spaces for everything that is no code, except the names of ops; keeps positions.
std::string code_of(std::string_view source) {
  static const RegularExpression kOpName(R"re(^"[\w/ .-]*_op[\w/ .-]*"$)re");
  std::string code(source);
  for (size_t i = 0; i < code.size();) {
    const size_t end = end_of_no_code(code, i);
    const bool is_name = end - i < 200 && found_in(code.substr(i, end - i), kOpName).has_value();
    for (size_t k = i; k < end && !is_name; ++k) {
      if (code[k] != '\n') code[k] = ' ';
    }
    i = std::max(end, i + 1);
  }
  return code;
}

/// The place of the bracket that matches `open`; the end of the code if there is none.
size_t closing(const std::string& code, size_t open) {
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    if (is_one_of(code[i], "([{")) ++depth;
    if (is_one_of(code[i], ")]}") && --depth <= 0) return i;
  }
  return code.size();
}

/// The captures in the brackets of `list`.
std::vector<std::string> captures_in(const std::string& list) {
  std::vector<std::string> captures;
  for (size_t begin = 1; begin < list.size();) {
    size_t end = begin;
    while (end + 1 < list.size() && list[end] != ',') {
      end = is_one_of(list[end], "([{") ? closing(list, end) + 1 : end + 1;
    }
    std::string capture = list.substr(begin, end - begin);
    capture.erase(0, capture.find_first_not_of(" \t\n"));
    capture.erase(capture.find_last_not_of(" \t\n") + 1);
    captures.push_back(std::move(capture));
    begin = end + 1;
  }
  return captures;
}

class CaptureCheck {
 public:
  explicit CaptureCheck(std::string_view source) : code_(code_of(source)) {}

  std::vector<std::string> run(const std::string& file) const {
    std::vector<std::string> messages;
    int line = 1;
    for (size_t i = 0; i < code_.size(); ++i) {
      if (code_[i] == '\n') ++line;
      if (code_[i] != '[' || code_.compare(i, 2, "[[") == 0) continue;
      const size_t end = closing(code_, i);
      const std::string list = code_.substr(i, end - i + 1);
      const std::string what = list.find('&') == std::string::npos ? "" : by_reference(list);
      const std::string op = what.empty() ? "" : op_at(i, end);
      if (!op.empty())
        messages.push_back(fmt::format("{}:{}: {} captures {}", file, line, op, what));
    }
    return messages;
  }

 private:
  /// The error for a list of captures, and the correction; empty when the list has no error.
  static std::string by_reference(const std::string& list) {
    std::vector<std::string> names;
    std::vector<std::string> others;
    bool takes_all = false;
    bool takes_this = false;
    bool refers_to_all = false;
    for (const auto& capture : captures_in(list)) {
      if (capture == "&") {
        refers_to_all = true;
      } else if (capture == "=") {
        takes_all = true;
      } else if (capture == "this") {
        takes_this = true;
      } else if (!capture.starts_with('&')) {
        others.push_back(capture);
      } else {
        const std::string name = capture.substr(capture.find_first_not_of("& "));
        names.push_back(name.substr(name.find_first_not_of('.'), name.find_first_of(" =")));
        others.push_back(name);
      }
    }
    if (!refers_to_all && names.empty()) return "";
    if (takes_all || refers_to_all) {  // listing each name would be longer than needed
      std::erase_if(others, [](const auto& text) { return text.find('=') == std::string::npos; });
      others.insert(others.begin(), {"=", "this"});
    } else if (takes_this) {
      others.insert(others.begin(), "this");
    }
    return fmt::format(
        "{}by reference ({}): step_op has returned when it runs, and what it refers to is gone: "
        "capture by value, [{}]",
        refers_to_all ? "" : fmt::format("{} ", fmt::join(names, ", ")), list,
        fmt::join(others, ", "));
  }

  /// The op that the lambda with the captures at `begin` to `end` becomes; empty when it is no op.
  std::string op_at(size_t begin, size_t end) const {
    size_t body = end + 1;
    while (body < code_.size() && !is_one_of(code_[body], "{;)]}")) {
      body = is_one_of(code_[body], "([") ? closing(code_, body) + 1 : body + 1;
    }
    if (body >= code_.size() || code_[body] != '{') return "";
    const size_t over = closing(code_, body);
    const size_t next = code_.find_first_not_of(" \t\n", over + 1);
    if (next != std::string::npos && code_[next] == '(') return "";  // called: its result is the op

    static const std::string kWrapped =
        R"((?:\(\s*|(?:\w+::)*(?:TrainOp|LogOp|EvalOp|move|function\s*<[^;{}]*>)\s*[({]\s*)*$)";
    static const RegularExpression kNamed(
        R"re((?:[\[{]|\bset\()\s*"([^"]*_op[^"]*)"\s*(?:\]\s*=|,)\s*)re" + kWrapped);
    static const RegularExpression kMember(R"([.>](\w+_ops?)\s*(?:\[[^\]]*\]\s*)?[={]\s*)" +
                                           kWrapped);
    static const RegularExpression kType(R"(\b(Train|Log|Eval)Op(?:\s+\w+)?\s*[=({]\s*)" +
                                         kWrapped);
    static const RegularExpression kFirst(R"(\bStepOps(?:\s+\w+)?[\s=]*\{\s*)" + kWrapped);
    static const RegularExpression kReturned(R"(\breturn\s*\{\s*)" + kWrapped);
    static const RegularExpression kVariable(R"((\w+)\s*[=({]\s*)" + kWrapped);
    const size_t first = begin - std::min(begin, kMostBefore);
    const std::string before = code_.substr(first, begin - first);
    if (const auto found = found_in(before, kNamed)) return found->at(1);
    if (const auto found = found_in(before, kMember)) return found->at(1);
    if (const auto found = found_in(before, kType)) {
      return found->at(1) == "Train" ? "train_op" : found->at(1) == "Log" ? "log_op" : "eval_op";
    }
    const bool is_first =
        found_in(before, kFirst) || (found_in(before, kReturned) && is_in_step_op(begin));
    if (is_first) return "train_op";
    const auto variable = found_in(before, kVariable);
    return variable ? use_of(variable->at(1), over) : "";
  }

  bool is_in_step_op(size_t place) const {
    const size_t name = code_.rfind("step_op(", place);
    const size_t body = name == std::string::npos ? name : code_.find('{', name);
    return body != std::string::npos && closing(code_, body) > place;
  }

  /// The op that a variable becomes in the rest of its block, after `begin`.
  std::string use_of(const std::string& variable, size_t begin) const {
    begin = std::min(code_.find(';', begin), code_.size());
    size_t end = begin;
    while (end < code_.size() && code_[end] != '}') {
      end = is_one_of(code_[end], "([{") ? closing(code_, end) + 1 : end + 1;
    }
    const std::string block = code_.substr(begin, end - begin);
    static const std::string kBefore =
        R"re((?:[.>](\w+_op)\s*[={]|(?:[\[{]|\bset\()\s*"([^"]*_op[^"]*)"\s*(?:\]\s*=|,))\s*(?:(?:std::)?move\()?)re";
    const RegularExpression use(kBefore + variable + R"(\s*\)*\s*[,;}])");
    const auto found = found_in(block, use);
    return found ? found->at(1) + found->at(2) : "";
  }

  const std::string code_;
};

}  // namespace

std::vector<std::string> check_captures(std::string_view source, const std::string& file) {
  return CaptureCheck(source).run(file);
}

}  // namespace stepop
