#include "runtime/log/plain_line.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <string>

#include "runtime/base/random.h"
#include "runtime/log/metrics_file.h"
#include "runtime/log/metrics_scan.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace plain_line_test {

constexpr const char* kPlain =
    R"({"step":70,"epoch":0.25,"samples":64,"time":1.5,"train/log_op/loss":-1.25e-07,"b":"NaN"})";

TEST_CASE("every line that Metrics writes with plain names is plain") {
  const ScratchFolder folder;
  const std::string path = folder.path("metrics.jsonl");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  OrderedMap<double> values;
  for (const double value : {0.0, -0.0, 1.0, -2.5, 1e-30, 1.7e99, 0.1, 123456789.0, kInfinity,
                             -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    values.set(fmt::format("train/log_op/{}", values.size()), value);
  }
  Metrics(path).write({.step = 7, .epoch = 0.5, .samples = 448, .seconds = 1.5}, values);
  std::string line = read_bytes(path);
  line.pop_back();
  CHECK(step_of_plain_line(line) == 7);
  CHECK(step_of_plain_line(kPlain) == 70);
}

TEST_CASE("what may not be what it looks like is left to the parser") {
  const auto with = [](const char* part, const char* other) {
    std::string line = kPlain;
    line.replace(line.find(part), std::string(part).size(), other);
    return step_of_plain_line(line);
  };
  CHECK(with("70", "7") == 7);
  for (const char* step : {"", "-1", "07", "7.0", "9999999999999999999", "\"7\""}) {
    CHECK(with("70", step) == std::nullopt);
  }
  for (const char* number : {"1e999", "1.", ".5", "+1", "nan", "null", "1e", "\"nan\""}) {
    CHECK(with("-1.25e-07", number) == std::nullopt);
  }
  CHECK(with("\"b\"", "\"step\"") == std::nullopt);  // the last one would count
  CHECK(with("\"b\"", "\"\\u0062\"") == std::nullopt);
  CHECK(with("\"b\"", "\"\xc3\xa4\"") == std::nullopt);
  CHECK(with("\"}", "\"}}") == std::nullopt);
  CHECK(with("\"}", "\"") == std::nullopt);
  CHECK(step_of_plain_line("") == std::nullopt);
}

TEST_CASE("of whatever line a step is told, the parser tells the same") {
  Random random(7);
  const std::string letters = R"({}[]",:-+.eE0123456789 \stepNaN)";
  int told = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string line = kPlain;
    for (int64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(line.size())));
      const char letter =
          letters[static_cast<size_t>(random.below(static_cast<int64_t>(letters.size())))];
      if (random.below(3) == 0) {
        line.erase(at, 1);
      } else if (random.below(2) == 0) {
        line.insert(at, 1, letter);
      } else {
        line[at] = letter;
      }
    }
    const auto step = step_of_plain_line(line);
    if (!step) continue;
    ++told;
    CAPTURE(line);
    const auto parsed = parse_metrics_line(line);
    REQUIRE(parsed);
    CHECK(parsed->event.step == *step);
  }
  CHECK(told > 1000);
}

TEST_CASE("one metric is scanned for as if every line had been parsed") {
  const ScratchFolder folder;
  const std::string path = folder.write("metrics.jsonl", R"({"step":1,"a":1,"b":2}
{"step":2,"b":2}
{"step":3,"\u0061":3}
not JSON "a"
{"step":4,"c":"NaN","a":"Infinity"}
{"step":5,"a":5)");
  std::vector<std::pair<int64_t, double>> found;
  scan_metric(path, "a", [&](int64_t step, double value) { found.emplace_back(step, value); });
  CHECK((found == std::vector<std::pair<int64_t, double>>{
                      {1, 1}, {3, 3}, {4, std::numeric_limits<double>::infinity()}}));
}

}  // namespace plain_line_test
}  // namespace stepop
