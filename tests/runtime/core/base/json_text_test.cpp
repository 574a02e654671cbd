#include "runtime/core/base/json_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace stepop {
namespace json_text_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

TEST_CASE("a number is the shortest that reads as the same double, and is no integer") {
  CHECK(json_number(1) == "1.0");
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(-0.0) == "-0.0");
  CHECK(json_number(1e-5) == "1e-05");
  CHECK(json_number(1.0 / 3) == "0.3333333333333333");
}

TEST_CASE("NaN and infinities are texts, or words as Python's json writes them") {
  CHECK(json_number(kNan) == "\"NaN\"");
  CHECK(json_number(kInfinity) == "\"Infinity\"");
  CHECK(json_number(-kInfinity) == "\"-Infinity\"");
  CHECK(json_number(-kNan, NonFiniteJson::kPython) == "NaN");
  CHECK(json_number(-kInfinity, NonFiniteJson::kPython) == "-Infinity");
  CHECK(std::isnan(non_finite_number("NaN").value()));
  CHECK(non_finite_number("-Infinity") == -kInfinity);
  CHECK_FALSE(non_finite_number("nan"));
}

TEST_CASE("a text is quoted, whatever bytes it has") {
  CHECK(json_text("a \"b\"\n") == R"("a \"b\"\n")");
  CHECK(json_text("\u00e4") == "\"\u00e4\"");
  CHECK(json_text("\xff") == "\"\ufffd\"");
}

TEST_CASE("JSON is read in its own order or by names, and written with whatever bytes it has") {
  const std::string text = R"({"b": 1, "a": [true, null]})";
  CHECK(write_json(read_ordered_json(text)) == R"({"b":1,"a":[true,null]})");
  CHECK(write_json(read_json(text)) == R"({"a":[true,null],"b":1})");
  CHECK(write_json(try_read_ordered_json(text), 1) ==
        "{\n \"b\": 1,\n \"a\": [\n  true,\n  null\n ]\n}");
  CHECK(write_json(nlohmann::json{{"\xff", "\xfe"}}) == "{\"\ufffd\":\"\ufffd\"}");
  CHECK(write_json(nlohmann::ordered_json{"\xff"}) == "[\"\ufffd\"]");
}

TEST_CASE("a text that is no JSON is discarded, or an exception of nlohmann") {
  for (const std::string text : {"", "{\"a\": 1", "{} {}", "\"\xff\""}) {
    CAPTURE(text);
    CHECK(try_read_json(text).is_discarded());
    CHECK(try_read_ordered_json(text).is_discarded());
    CHECK_THROWS_AS(read_json(text), nlohmann::json::exception);
    CHECK_THROWS_AS(read_ordered_json(text), nlohmann::json::exception);
  }
}

}  // namespace json_text_test
}  // namespace stepop
