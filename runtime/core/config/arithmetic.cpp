#include "runtime/core/config/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

/// Thrown for a text that is no expression over numbers.
struct NoExpression {};

constexpr int kMostNested = 100;

double real(const Value& value) {
  return value.is_int() ? static_cast<double>(value.as_int()) : value.as_float();
}

Value whole(bool overflows, int64_t number) {
  if (overflows) throw Error("computes a whole number of more than 64 bits");
  return Value(number);
}

Value added(const Value& a, const Value& b) {
  int64_t sum = 0;
  if (!a.is_int() || !b.is_int()) return Value(real(a) + real(b));
  const bool overflows = __builtin_add_overflow(a.as_int(), b.as_int(), &sum);
  return whole(overflows, sum);
}

Value subtracted(const Value& a, const Value& b) {
  int64_t difference = 0;
  if (!a.is_int() || !b.is_int()) return Value(real(a) - real(b));
  const bool overflows = __builtin_sub_overflow(a.as_int(), b.as_int(), &difference);
  return whole(overflows, difference);
}

Value multiplied(const Value& a, const Value& b) {
  int64_t product = 0;
  if (!a.is_int() || !b.is_int()) return Value(real(a) * real(b));
  const bool overflows = __builtin_mul_overflow(a.as_int(), b.as_int(), &product);
  return whole(overflows, product);
}

void check_divisor(const Value& value) {
  if (real(value) == 0) throw Error("divides by 0");
}

Value divided(const Value& a, const Value& b) {
  check_divisor(b);
  return Value(real(a) / real(b));
}

Value floor_divided(const Value& a, const Value& b) {
  check_divisor(b);
  if (!a.is_int() || !b.is_int()) return Value(std::floor(real(a) / real(b)));
  if (b.as_int() == -1) return subtracted(Value(int64_t{0}), a);
  const int64_t quotient = a.as_int() / b.as_int();
  const bool is_below = a.as_int() % b.as_int() != 0 && (a.as_int() < 0) != (b.as_int() < 0);
  return Value(quotient - (is_below ? 1 : 0));
}

/// Reads a text once to see that it is an expression, and once to compute it: only then are its
/// references followed.
class Expression {
 public:
  using Find = std::function<Value(const std::string& reference)>;

  /// `find` is null when nothing is to be computed.
  Expression(std::string_view text, const Find* find) : text_(text), find_(find) {}

  Value read() {
    const Value value = sum();
    if (at_ != text_.size() || !has_reference_ || !has_operation_) throw NoExpression{};
    return value;
  }

 private:
  bool take(std::string_view words) {
    if (!text_.substr(at_).starts_with(words)) return false;
    at_ += words.size();
    return true;
  }

  /// Takes ` * `, an operator between spaces.
  bool take_operator(std::string_view words) {
    const bool is_there = take(words);
    has_operation_ |= is_there;
    return is_there;
  }

  using Operation = Value (*)(const Value&, const Value&);

  Value combined(Operation operation, const Value& left, const Value& right) const {
    return find_ == nullptr ? left : operation(left, right);
  }

  Value sum() {
    Value value = product();
    while (true) {
      if (take_operator(" + ")) {
        value = combined(added, value, product());
      } else if (take_operator(" - ")) {
        value = combined(subtracted, value, product());
      } else {
        return value;
      }
    }
  }

  Value product() {
    Value value = factor();
    while (true) {
      if (take_operator(" * ")) {
        value = combined(multiplied, value, factor());
      } else if (take_operator(" / ")) {
        value = combined(divided, value, factor());
      } else if (take_operator(" // ")) {
        value = combined(floor_divided, value, factor());
      } else {
        return value;
      }
    }
  }

  Value factor() {
    if (++nested_ > kMostNested) throw NoExpression{};
    Value value;
    if (take("(")) {
      value = sum();
      if (!take(")")) throw NoExpression{};
    } else if (take("min(")) {
      value = extreme(true);
    } else if (take("max(")) {
      value = extreme(false);
    } else {
      value = take("{") ? reference() : number();
    }
    --nested_;
    return value;
  }

  Value extreme(bool smallest) {
    has_operation_ = true;
    Value value = sum();
    while (take(", ")) {
      Value other = sum();
      if (smallest ? real(other) < real(value) : real(other) > real(value)) {
        value = std::move(other);
      }
    }
    if (!take(")")) throw NoExpression{};
    return value;
  }

  Value reference() {
    const size_t end = std::min(text_.find_first_of("{} ,", at_), text_.size());
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    if (name.empty() || !take("}")) throw NoExpression{};
    has_reference_ = true;
    if (find_ == nullptr) return Value(int64_t{1});
    Value value = (*find_)(name);
    if (!value.is_int() && !value.is_float()) throw NoExpression{};
    return value;
  }

  Value number() {
    const std::string_view rest = text_.substr(at_);
    const size_t length = std::min(rest.find_first_of(" ,()"), rest.size());
    const char* const begin = rest.data();
    const char* const end = begin + length;
    at_ += length;
    int64_t integer = 0;
    if (const auto read = std::from_chars(begin, end, integer); length > 0 && read.ptr == end) {
      // Alone, digits of more than 64 bits are a text.
      if (find_ == nullptr || read.ec == std::errc()) return Value(integer);
      throw Error(fmt::format("has a whole number of more than 64 bits, {}: {}.0 is a float",
                              rest.substr(0, length), rest.substr(0, length)));
    }
    double number = 0;
    const auto read = std::from_chars(begin, end, number);
    if (length == 0 || read.ec != std::errc() || read.ptr != end || !std::isfinite(number)) {
      throw NoExpression{};
    }
    return Value(number);
  }

  std::string_view text_;
  const Find* find_;
  size_t at_ = 0;
  int nested_ = 0;
  bool has_reference_ = false;
  bool has_operation_ = false;
};

}  // namespace

std::optional<Value> calculate(const std::string& text,
                               const std::function<Value(const std::string& reference)>& find) {
  try {
    Expression(text, nullptr).read();
    return Expression(text, &find).read();
  } catch (const NoExpression&) {
    return std::nullopt;
  }
}

}  // namespace stepop
