#include "models/exported/symbolic_operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

using c10::IValue;
using Values = std::vector<IValue>;

bool is_whole(const Values& values) {
  return std::ranges::all_of(values, [](const IValue& value) { return !value.isDouble(); });
}

int64_t whole(const IValue& value) {
  if (value.isBool()) return value.toBool() ? 1 : 0;
  if (value.isInt()) return value.toInt();
  throw Error("arithmetic on a size got a value that is no number");
}

double real(const IValue& value) {
  return value.isDouble() ? value.toDouble() : static_cast<double>(whole(value));
}

void check_divisor(int64_t value) {
  if (value == 0) throw Error("a size is divided by 0");
}

int64_t floor_divided(int64_t a, int64_t b) {
  check_divisor(b);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// Whole numbers where both are, as in Python.
IValue add(const Values& v) {
  return is_whole(v) ? IValue(whole(v[0]) + whole(v[1])) : IValue(real(v[0]) + real(v[1]));
}
IValue subtract(const Values& v) {
  return is_whole(v) ? IValue(whole(v[0]) - whole(v[1])) : IValue(real(v[0]) - real(v[1]));
}
IValue multiply(const Values& v) {
  return is_whole(v) ? IValue(whole(v[0]) * whole(v[1])) : IValue(real(v[0]) * real(v[1]));
}
IValue floor_divide(const Values& v) {
  return is_whole(v) ? IValue(floor_divided(whole(v[0]), whole(v[1])))
                     : IValue(std::floor(real(v[0]) / real(v[1])));
}
IValue modulo(const Values& v) {
  if (!is_whole(v)) return real(v[0]) - std::floor(real(v[0]) / real(v[1])) * real(v[1]);
  return whole(v[0]) - floor_divided(whole(v[0]), whole(v[1])) * whole(v[1]);
}
IValue divide(const Values& v) { return real(v[0]) / real(v[1]); }
IValue power(const Values& v) {
  const double result = std::pow(real(v[0]), real(v[1]));
  return is_whole(v) && whole(v[1]) >= 0 ? IValue(static_cast<int64_t>(result)) : IValue(result);
}
IValue negate(const Values& v) { return is_whole(v) ? IValue(-whole(v[0])) : IValue(-real(v[0])); }
IValue largest(const Values& v) { return real(v[0]) >= real(v[1]) ? v[0] : v[1]; }
IValue smallest(const Values& v) { return real(v[0]) <= real(v[1]) ? v[0] : v[1]; }
IValue floor_of(const Values& v) { return static_cast<int64_t>(std::floor(real(v[0]))); }
IValue ceil_of(const Values& v) { return static_cast<int64_t>(std::ceil(real(v[0]))); }
IValue truncated(const Values& v) { return static_cast<int64_t>(real(v[0])); }
IValue as_float(const Values& v) { return real(v[0]); }
IValue square_root(const Values& v) { return std::sqrt(real(v[0])); }
IValue equal(const Values& v) { return real(v[0]) == real(v[1]); }
IValue not_equal(const Values& v) { return real(v[0]) != real(v[1]); }
IValue less(const Values& v) { return real(v[0]) < real(v[1]); }
IValue less_equal(const Values& v) { return real(v[0]) <= real(v[1]); }
IValue greater(const Values& v) { return real(v[0]) > real(v[1]); }
IValue greater_equal(const Values& v) { return real(v[0]) >= real(v[1]); }
IValue both(const Values& v) { return whole(v[0]) != 0 && whole(v[1]) != 0; }
IValue either(const Values& v) { return whole(v[0]) != 0 || whole(v[1]) != 0; }
IValue negated(const Values& v) { return whole(v[0]) == 0; }
IValue chosen(const Values& v) { return whole(v[0]) != 0 ? v[1] : v[2]; }

struct Entry {
  size_t arguments;
  SymbolicOperator call;
};

const std::map<std::string, Entry>& entries() {
  static const std::map<std::string, Entry> all = {
      {"_operator.add", {2, add}},        {"_operator.sub", {2, subtract}},
      {"_operator.mul", {2, multiply}},   {"_operator.floordiv", {2, floor_divide}},
      {"_operator.mod", {2, modulo}},     {"_operator.truediv", {2, divide}},
      {"_operator.pow", {2, power}},      {"_operator.neg", {1, negate}},
      {"_operator.eq", {2, equal}},       {"_operator.ne", {2, not_equal}},
      {"_operator.lt", {2, less}},        {"_operator.le", {2, less_equal}},
      {"_operator.gt", {2, greater}},     {"_operator.ge", {2, greater_equal}},
      {"_operator.and_", {2, both}},      {"_operator.or_", {2, either}},
      {"math.floor", {1, floor_of}},      {"math.ceil", {1, ceil_of}},
      {"math.trunc", {1, truncated}},     {"torch.sym_max", {2, largest}},
      {"torch.sym_min", {2, smallest}},   {"torch.sym_not", {1, negated}},
      {"torch.sym_float", {1, as_float}}, {"torch.sym_int", {1, truncated}},
      {"torch.sym_ite", {3, chosen}},     {"torch._sym_sqrt", {1, square_root}}};
  return all;
}

}  // namespace

SymbolicOperator find_symbolic_operator(const std::string& name, size_t arguments) {
  const auto found = entries().find(name);
  if (found == entries().end() || found->second.arguments != arguments) return nullptr;
  return found->second.call;
}

}  // namespace stepop
