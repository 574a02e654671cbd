#include "runtime/core/value/yaml_writer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/python.h"
#include "tests/runtime/core/value/random_values.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace json_writer_test {

TEST_CASE("JSON keeps the types of a config apart") {
  const Value config(
      Value::Map{{"nothing", Value()},
                 {"yes", true},
                 {"count", std::numeric_limits<int64_t>::min()},
                 {"rates", Value::List{1.0, 1e-5, 0.1, 1e22, -0.0}},
                 {"bounds", Value::List{std::nan(""), HUGE_VAL, -HUGE_VAL}},
                 {"text", "{a} \"b\"\n\x01 \xc3\xa4"},
                 {"none", Value::List{}},
                 {"optimizer", Value::Map{{"class", "Adam"}, {"more", Value(Value::Map{})}}}});
  CHECK(to_json(config) ==
        R"({"nothing": null, "yes": true, "count": -9223372036854775808, )"
        R"("rates": [1.0, 1e-05, 0.1, 1e+22, -0.0], "bounds": [NaN, Infinity, -Infinity], )"
        R"("text": "{a} \"b\"\n\u0001 )"
        "\xc3\xa4\", "
        R"("none": [], "optimizer": {"class": "Adam", "more": {}}})");
}

/// What Python prints for a value that it read from JSON, its numbers in hexadecimal.
const std::string kShow = R"(
import json, math, sys
def show(value):
    if isinstance(value, dict):
        return "{" + ",".join(show(k) + ":" + show(v) for k, v in value.items()) + "}"
    if isinstance(value, list): return "[" + ",".join(map(show, value)) + "]"
    if isinstance(value, str): return value.encode().hex() + "t"
    if isinstance(value, float) and math.isfinite(value): return value.hex()
    return repr(value)
for line in open(sys.argv[1], encoding="utf-8", newline="\n"): print(show(json.loads(line)))
)";

std::string hex_text(const std::string& text) {
  std::string out;
  for (const char c : text) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out + "t";
}

/// As Python's float.hex() does: 13 digits behind the point.
std::string hex_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return std::signbit(value) ? "-0x0.0p+0" : "0x0.0p+0";
  int exponent = 0;
  double mantissa = 2 * std::frexp(std::abs(value), &exponent);
  if (--exponent < -1022) {
    mantissa = std::ldexp(mantissa, exponent + 1022);
    exponent = -1022;
  }
  const auto digits = static_cast<int64_t>(std::ldexp(mantissa, 52));
  return fmt::format("{}0x{}.{:013x}p{:+d}", value < 0 ? "-" : "", digits >> 52,
                     digits & ((int64_t{1} << 52) - 1), exponent);
}

std::string show(const Value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_float()) return hex_float(value.as_float());
  if (value.is_text()) return hex_text(value.as_text());
  std::string out;
  if (value.is_list()) {
    for (const auto& item : value.as_list()) out += (out.empty() ? "" : ",") + show(item);
    return "[" + out + "]";
  }
  for (const auto& [key, item] : value.as_map()) {
    out += (out.empty() ? "" : ",") + hex_text(key) + ":" + show(item);
  }
  return "{" + out + "}";
}

TEST_CASE("Python's json reads any config with its types and values, bit by bit") {
  const ScratchFolder folder;
  RandomValues random(20261121);
  std::string lines;
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const Value value = random.value(3);
    lines += to_json(value) + "\n";
    expected += show(value) + "\n";
  }
  CHECK((run_python(kShow, {folder.write("values.json", lines)}) == expected));
}

}  // namespace json_writer_test
}  // namespace stepop
