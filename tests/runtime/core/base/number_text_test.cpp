#include "runtime/core/base/number_text.h"

#include <doctest/doctest.h>

#include <limits>

namespace stepop {
namespace number_text_test {

TEST_CASE("thousands are separated") {
  CHECK(with_thousands(0) == "0");
  CHECK(with_thousands(999) == "999");
  CHECK(with_thousands(1000) == "1,000");
  CHECK(with_thousands(-1234567) == "-1,234,567");
}

TEST_CASE("one thing is counted without a plural") {
  CHECK(counted(0, "row") == "0 rows");
  CHECK(counted(1, "row") == "1 row");
  CHECK(counted(1234, "bad example") == "1,234 bad examples");
}

TEST_CASE("short numbers keep four digits") {
  CHECK(short_number(0.312449) == "0.3124");
  CHECK(short_number(12.3456) == "12.35");
  CHECK(short_number(1.2e-5) == "1.2e-05");
  CHECK(short_number(8940) == "8940");
  CHECK(short_number(-2) == "-2");
  CHECK(short_number(std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(short_number(-std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(short_number(-std::numeric_limits<double>::infinity()) == "-inf");
}

TEST_CASE("sizes are given by thousands") {
  CHECK(size_text(5) == "5 B");
  CHECK(size_text(999.9) == "1000 B");
  CHECK(size_text(266'400) == "266.4 kB");
  CHECK(size_text(1.2e9) == "1.2 GB");
  CHECK(size_text(5e12) == "5000.0 GB");
}

TEST_CASE("times are told as a clock tells them") {
  CHECK(clock_text(0) == "0:00");
  CHECK(clock_text(20.6) == "0:21");
  CHECK(clock_text(59.6) == "1:00");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(clock_text(std::numeric_limits<double>::infinity()) == "-:--");
  CHECK(clock_text(-1) == "-:--");
}

}  // namespace number_text_test
}  // namespace stepop
