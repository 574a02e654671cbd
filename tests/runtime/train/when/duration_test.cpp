#include "runtime/train/when/duration.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace duration_test {

Config config_of(const std::string& yaml) {
  return Config(parse_yaml("key: " + yaml, {"test.yaml", 0}));
}

Duration duration(const std::string& yaml) { return read_duration(config_of(yaml), "key"); }
double seconds(const std::string& yaml) { return read_seconds(config_of(yaml), "key"); }

TEST_CASE("a duration is of steps, epochs or minutes") {
  CHECK(duration("100").length(25) == 100);
  CHECK(duration("100s").length(25) == 100);
  CHECK(duration("2e").length(25) == 50);
  CHECK(duration("0.5e").length(25) == 12.5);
  CHECK(duration("10m").length(25) == 10);
  CHECK(duration("10m").axis() == Duration::Axis::kMinutes);
  CHECK(duration("10").axis() == Duration::Axis::kSteps);
  CHECK(duration("1e").text() == "1 epoch");
  CHECK(duration("0.5e").text() == "0.5 epochs");
  CHECK(duration("500").text() == "500 steps");
  CHECK(duration("30m").text() == "30 minutes");
}

TEST_CASE("what is no duration is refused with what would be one") {
  const auto refused = [](const std::string& yaml) { return message_of([&] { duration(yaml); }); };
  CHECK(refused("soon") ==
        "test.yaml:1: key: expected a number of steps (100), epochs (2e), minutes (10m), examples "
        "(10k examples), or a part of the training (10%, end), found \"soon\"");
  CHECK(refused("[1]") ==
        "test.yaml:1: key: expected a number of steps (100), epochs (2e), minutes (10m), examples "
        "(10k examples), or a part of the training (10%, end), found [1]");
  CHECK(refused("5h") ==
        "test.yaml:1: key: unknown unit \"h\" in \"5h\"; there are s (steps), e (epochs), m "
        "(minutes), % (of the training) and \" examples\"");
  CHECK(refused("0e") == "test.yaml:1: key: expected more than 0, found \"0e\"");
  CHECK(refused(".inf") == "test.yaml:1: key: expected more than 0, found .inf");
  CHECK(message_of([] { read_duration(config_of("-1"), "key", true); }) ==
        "test.yaml:1: key: expected 0 or more, found -1");
  CHECK(message_of([] { read_duration(config_of("soon"), "key", false, ", or never"); }) ==
        "test.yaml:1: key: expected a number of steps (100), epochs (2e), minutes (10m), examples "
        "(10k examples), or a part of the training (10%, end), or never, found \"soon\"");
}

TEST_CASE("a time by the clock is in days, hours, minutes and seconds") {
  CHECK(seconds("45s") == 45);
  CHECK(seconds("90m") == 5400);
  CHECK(seconds("3h50m") == 13800);
  CHECK(seconds("1d2h") == 93600);
  CHECK(seconds("2h30m10s") == 9010);
  CHECK(seconds("1.5h") == 5400);
  CHECK(seconds("0h1s") == 1);
}

TEST_CASE("a time without a unit, in a wrong order or of nothing is refused with examples") {
  const std::string expected = "expected a time such as 3h50m, 90m, 1d2h or 45s";
  const auto refused = [](const std::string& yaml) { return message_of([&] { seconds(yaml); }); };
  CHECK(refused("3600") == "test.yaml:1: key: " + expected + ", with its unit, found 3600");
  CHECK(refused("1.5") == "test.yaml:1: key: " + expected + ", with its unit, found 1.5");
  for (const char* text :
       {"50m3h", "3h50", "3h50h", "3 h", "h", "3x", "-3h", "1e3s", "1..5h", ".h"}) {
    CHECK(refused(text) == "test.yaml:1: key: " + expected + ", found \"" + text + "\"");
  }
  CHECK(refused("\"03:50:00\"") == "test.yaml:1: key: " + expected + ", found \"03:50:00\"");
  CHECK(refused("[3h]") == "test.yaml:1: key: " + expected + ", found [\"3h\"]");
  CHECK(refused("0h0s") == "test.yaml:1: key: expected more than 0, found \"0h0s\"");
}

}  // namespace duration_test
}  // namespace stepop
