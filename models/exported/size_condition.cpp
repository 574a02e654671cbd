#include "models/exported/size_condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

using Term = SizeCondition::Term;

/// Reads Python's expressions by their precedence, from `x if c else y` to a number in parentheses.
class Parser {
 public:
  Parser(std::string_view code, const std::vector<std::string>& inputs)
      : rest_(code), inputs_(inputs) {}

  Term all() {
    constexpr size_t kLongest = 4000;  // a file may be hostile
    if (rest_.size() > kLongest) throw Error("it is too long");
    Term term = choice();
    skip_space();
    if (!rest_.empty()) throw not_known();
    return term;
  }

 private:
  static constexpr int kDeepest = 200;

  Error not_known() const { return Error(fmt::format("\"{}\" is not understood", rest_)); }

  void skip_space() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  static bool is_word(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  }

  /// Takes a sign, or a word that ends there.
  bool take(std::string_view text) {
    skip_space();
    if (!rest_.starts_with(text)) return false;
    const bool goes_on =
        rest_.size() > text.size() && is_word(text.back()) && is_word(rest_[text.size()]);
    if (goes_on) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  void expect(std::string_view text) {
    if (!take(text)) throw not_known();
  }

  static Term made(const char* name, std::vector<Term> arguments) {
    Term term;
    term.call = find_symbolic_operator(name, arguments.size());
    if (term.call == nullptr) throw Error(fmt::format("{} is not known", name));
    term.arguments = std::move(arguments);
    return term;
  }

  Term choice() {
    if (++depth_ > kDeepest) throw Error("it is too deep");
    Term term = disjunction();
    if (take("if")) {
      Term condition = disjunction();
      expect("else");
      Term other = choice();
      term = made("torch.sym_ite", {std::move(condition), std::move(term), std::move(other)});
    }
    --depth_;
    return term;
  }

  Term disjunction() {
    Term term = conjunction();
    while (take("or")) term = made("_operator.or_", {std::move(term), conjunction()});
    return term;
  }

  Term conjunction() {
    Term term = negation();
    while (take("and")) term = made("_operator.and_", {std::move(term), negation()});
    return term;
  }

  Term negation() {
    if (!take("not")) return comparison();
    if (++depth_ > kDeepest) throw Error("it is too deep");
    Term term = made("torch.sym_not", {negation()});
    --depth_;
    return term;
  }

  /// Both parts of `1 < a <= 4` hold.
  Term comparison() {
    static constexpr std::array<std::pair<const char*, const char*>, 6> kSigns = {
        {{"<=", "_operator.le"},
         {">=", "_operator.ge"},
         {"==", "_operator.eq"},
         {"!=", "_operator.ne"},
         {"<", "_operator.lt"},
         {">", "_operator.gt"}}};
    Term left = either();
    Term result;
    bool compares = false;
    const auto next = [&] {
      return std::ranges::find_if(kSigns, [&](const auto& one) { return take(one.first); });
    };
    for (auto sign = next(); sign != kSigns.end(); sign = next()) {
      Term right = either();
      Term one = made(sign->second, {std::move(left), right});
      result =
          compares ? made("_operator.and_", {std::move(result), std::move(one)}) : std::move(one);
      left = std::move(right);
      compares = true;
    }
    return compares ? result : left;
  }

  Term either() {
    Term term = both();
    while (take("|")) term = made("_operator.or_", {std::move(term), both()});
    return term;
  }

  Term both() {
    Term term = sum();
    while (take("&")) term = made("_operator.and_", {std::move(term), sum()});
    return term;
  }

  Term sum() {
    Term term = product();
    while (true) {
      if (take("+")) {
        term = made("_operator.add", {std::move(term), product()});
      } else if (take("-")) {
        term = made("_operator.sub", {std::move(term), product()});
      } else {
        return term;
      }
    }
  }

  Term product() {
    Term term = factor();
    while (true) {
      skip_space();
      if (rest_.starts_with("**")) return term;
      const char* name = take("//")  ? "_operator.floordiv"
                         : take("*") ? "_operator.mul"
                         : take("/") ? "_operator.truediv"
                         : take("%") ? "_operator.mod"
                                     : nullptr;
      if (name == nullptr) return term;
      term = made(name, {std::move(term), factor()});
    }
  }

  Term factor() {
    if (++depth_ > kDeepest) throw Error("it is too deep");
    Term term;
    if (take("-")) {
      term = made("_operator.neg", {factor()});
    } else if (take("+")) {
      term = factor();
    } else {
      term = atom();
      if (take("**")) term = made("_operator.pow", {std::move(term), factor()});
    }
    --depth_;
    return term;
  }

  Term atom() {
    if (take("(")) {
      Term term = choice();
      expect(")");
      return term;
    }
    Term term;
    if (take("True")) return term;
    if (take("False")) {
      term.number = false;
      return term;
    }
    if (take("L")) return size();
    skip_space();
    if (!rest_.empty() &&
        (std::isdigit(static_cast<unsigned char>(rest_.front())) != 0 || rest_.front() == '.')) {
      return number();
    }
    return function();
  }

  Term number() {
    const size_t length = std::min(rest_.find_first_not_of("0123456789.eE"), rest_.size());
    const std::string_view text = rest_.substr(0, length);
    Term term;
    int64_t whole = 0;
    double real = 0;
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, whole).ptr == end) {
      term.number = whole;
    } else if (std::from_chars(text.data(), end, real).ptr == end) {
      term.number = real;
    } else {
      throw not_known();
    }
    rest_.remove_prefix(length);
    return term;
  }

  Term function() {
    static const std::map<std::string_view, const char*> kNames = {
        {"max", "torch.sym_max"},        {"min", "torch.sym_min"},     {"Max", "torch.sym_max"},
        {"Min", "torch.sym_min"},        {"math.floor", "math.floor"}, {"math.ceil", "math.ceil"},
        {"math.trunc", "math.trunc"},    {"int", "math.trunc"},        {"float", "torch.sym_float"},
        {"math.sqrt", "torch._sym_sqrt"}};
    size_t length = 0;
    while (length < rest_.size() && (is_word(rest_[length]) || rest_[length] == '.')) ++length;
    const auto known = kNames.find(rest_.substr(0, length));
    if (known == kNames.end()) throw not_known();
    rest_.remove_prefix(length);
    expect("(");
    std::vector<Term> arguments{choice()};
    while (take(",")) arguments.push_back(choice());
    expect(")");
    Term term = std::move(arguments.front());
    if (arguments.size() == 1) return made(known->second, {std::move(term)});
    for (size_t i = 1; i < arguments.size(); ++i) {  // max of three is one of two twice
      term = made(known->second, {std::move(term), std::move(arguments[i])});
    }
    return term;
  }

  int64_t index() {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || number < 0) throw not_known();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return number;
  }

  /// `['image'].size()[3]`, and `['rest'][0].size()[1]` of an input `rest_0`.
  Term size() {
    std::string name;
    while (take("[")) {
      std::string part;
      if (take("'")) {
        part = rest_.substr(0, rest_.find('\''));
        rest_.remove_prefix(part.size());
        expect("'");
      } else {
        part = std::to_string(index());
      }
      expect("]");
      name += (name.empty() ? "" : "_") + part;
    }
    expect(".size()[");
    Term term;
    term.dimension = index();
    expect("]");
    term.input = position_of(name);
    return term;
  }

  int64_t position_of(const std::string& name) const {
    auto found = std::ranges::find(inputs_, name);
    if (found == inputs_.end()) {  // a word of Python's, such as `input`, gets a number: `input_1`
      found = std::ranges::find(inputs_, name + "_1");
    }
    if (found == inputs_.end()) throw Error(fmt::format("there is no input {}", name));
    return found - inputs_.begin();
  }

  std::string_view rest_;
  const std::vector<std::string>& inputs_;
  int depth_ = 0;
};

c10::IValue value_of(const Term& term, const std::vector<at::Tensor>& inputs) {
  if (term.input >= 0) {
    const at::Tensor& tensor = inputs.at(static_cast<size_t>(term.input));
    if (term.dimension >= tensor.dim()) throw Error("an input has too few dimensions");
    return tensor.size(term.dimension);
  }
  if (term.call == nullptr) return term.number;
  std::vector<c10::IValue> values;
  for (const auto& argument : term.arguments) values.push_back(value_of(argument, inputs));
  return term.call(values);
}

}  // namespace

SizeCondition::SizeCondition(const std::string& code, const std::vector<std::string>& inputs)
    : term_(Parser(code, inputs).all()) {}

bool SizeCondition::holds(const std::vector<at::Tensor>& inputs) const {
  const c10::IValue value = value_of(term_, inputs);
  return value.isBool()  ? value.toBool()
         : value.isInt() ? value.toInt() != 0
                         : value.toDouble() != 0;
}

}  // namespace stepop
