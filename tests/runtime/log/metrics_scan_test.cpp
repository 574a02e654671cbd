#include "runtime/log/metrics_scan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/base/error.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace metrics_scan_test {

using Lines = std::vector<std::string>;

TEST_CASE("a scan visits what read_metrics reads, line by line") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("{{\"step\":{},\"a/b/c\":{}}}\n", i, i * 0.5);
  text += "[1]\n\n{\"step\":7}\n{\"step\":1000,\"a/b";
  const std::string path = folder.write("metrics.jsonl", text);
  std::vector<MetricsLine> lines;
  CHECK(scan_metrics(path, [&](const MetricsLine& line) { lines.push_back(line); }) == 1);
  const MetricsFile file = read_metrics(path);
  CHECK(file.problems.size() == 1);
  REQUIRE(lines.size() == file.lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    CHECK(lines[i].event.step == file.lines[i].event.step);
    CHECK((lines[i].values == file.lines[i].values));
  }
}

TEST_CASE("the last lines are whole ones, however long they are") {
  const ScratchFolder folder;
  const auto last = [&](const std::string& text, int64_t bytes) {
    return last_lines(folder.write("lines", text), bytes);
  };
  CHECK((last("one\ntwo\nthree\n", 100) == Lines{"one", "two", "three"}));
  CHECK((last("one\ntwo\nthree\nhalf", 100) == Lines{"one", "two", "three"}));
  CHECK((last("one\ntwo\nthree\n", 10) == Lines{"three"}));
  CHECK(
      (last("one\n" + std::string(1000, 'x') + "\n", 10) == Lines{"one", std::string(1000, 'x')}));
  CHECK((last("", 10) == Lines{}));
  CHECK((last("half", 2) == Lines{}));
  CHECK((last("\n\n\n", 1) == Lines{}));
}

TEST_CASE("what cannot be read is told") {
  const ScratchFolder folder;
  const std::string path = folder / "none";
  const std::string message = "cannot read " + path + ": No such file or directory";
  CHECK(message_of([&] { scan_metrics(path, [](const MetricsLine&) {}); }) == message);
  CHECK(message_of([&] { last_lines(path); }) == message);
  CHECK(message_of([&] { last_lines(folder.path()); }) ==
        "cannot read " + folder.path() + ": Is a directory");
}

}  // namespace metrics_scan_test
}  // namespace stepop
