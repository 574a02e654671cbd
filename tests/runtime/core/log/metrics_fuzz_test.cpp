// Whatever the bytes of metrics.jsonl are, reading passes over what is broken and splitting loses
// no whole line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/random.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/core/value/yaml_scalar.h"
#include "tests/failing_files.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/runtime/core/log/metrics.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace metrics_fuzz_test {

using Lines = std::vector<std::string>;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t end) {
    return end == 0 ? 0 : static_cast<size_t>(random_.below(static_cast<int64_t>(end)));
  }

  /// Some lines as a training writes them, with one to six things done to them.
  std::string file() {
    std::string text;
    for (size_t step = 1; step <= 1 + below(6); ++step) {
      text += fmt::format(
          R"({{"step":{},"epoch":{},"samples":{},"time":{},"train/log_op/loss":{},"b":"NaN"}})"
          "\n",
          step, 0.25 * static_cast<double>(step), 64 * step, 1.5, random_.normal());
    }
    for (size_t count = 1 + below(6); count > 0; --count) change(text);
    return text;
  }

 private:
  void change(std::string& text) {
    static const std::vector<std::string> words = {
        "\n",  "\r\n", "\n\n", "{",  "}",    "[",        "]",        "\"",         "\\",
        ":",   ",",    "-",    "0",  "1e99", "1e999",    "-1",       "null",       "true",
        "\\u", "\xc3", "\xff", "{}", "[]",   "\"step\"", "Infinity", "{\"step\":", "\"\\ud800\""};
    const size_t at = below(text.size() + 1);
    const size_t length = std::min(text.size() - at, below(30));
    switch (below(9)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2:
        text.insert(at, words[below(words.size())]);
        break;
      case 3:
        text.replace(at, std::min<size_t>(length, 3), words[below(words.size())]);
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 5:
        text.resize(at);  // what a kill leaves
        break;
      case 6:
        text.replace(at, length, length, '\0');  // what a power cut leaves
        break;
      case 7:
        text.insert(at, std::to_string(random_()));
        break;
      default:
        if (below(50) == 0) text.insert(at, std::string(below(30000), "[{"[below(2)]));
    }
  }

  Random random_;
};

/// The lines that are not empty; `has_half` tells whether the last one lacks its end.
Lines lines_of(const std::string& text, bool& has_half) {
  std::istringstream stream(text);
  Lines lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  has_half = !text.empty() && text.back() != '\n';
  return lines;
}

Lines lines_of_file(const std::string& path) {
  bool has_half = false;
  Lines lines = lines_of(std::filesystem::exists(path) ? read_bytes(path) : "", has_half);
  CHECK_FALSE(has_half);
  return lines;
}

/// Whether `part` is `whole` with some lines left out.
bool is_subsequence(const Lines& part, const Lines& whole) {
  auto at = whole.begin();
  for (const auto& line : part) {
    at = std::find(at, whole.end(), line);
    if (at == whole.end()) return false;
    ++at;
  }
  return true;
}

TEST_CASE("mutated metrics are read, and split without the loss of a whole line") {
  const uint64_t seed = fuzz_seed();
  CAPTURE(seed);
  const uint64_t count = fuzz_count(2000);
  Mutator mutator(seed);
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const std::string superseded = folder / "superseded.jsonl";
  const FailingFiles none;  // nor does anything wait for the disk
  uint64_t whole = 0;
  uint64_t broken = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string text = mutator.file();
    const auto step = static_cast<int64_t>(mutator.below(7));
    CAPTURE(i);
    CAPTURE(step);
    CAPTURE(quoted_yaml(text.substr(0, 2000)));
    write_bytes(path, text);
    std::filesystem::remove(superseded);
    bool has_half = false;
    Lines before = lines_of(text, has_half);

    const MetricsFile file = read_metrics(path);
    const size_t told = file.lines.size() + static_cast<size_t>(file.broken);
    const size_t passed_over = before.size() - told;
    REQUIRE(passed_over <= (has_half ? 1 : 0));
    whole += file.lines.size();
    broken += static_cast<uint64_t>(file.broken);

    const MetricsSplit split = split_metrics(path, step, superseded);
    const Lines kept = lines_of_file(path);
    const Lines moved = lines_of_file(superseded);
    if (passed_over == 1) before.pop_back();
    REQUIRE(static_cast<size_t>(split.kept) == kept.size());
    REQUIRE(static_cast<size_t>(split.moved) == moved.size());
    REQUIRE(split.broken == file.broken);
    const bool is_dropped = split.last_line == MetricsSplit::LastLine::kDropped;
    REQUIRE(is_dropped == (passed_over == 1));
    // Each line is in one of the two, in its order.
    REQUIRE(kept.size() + moved.size() == before.size());
    REQUIRE(is_subsequence(kept, before));
    REQUIRE(is_subsequence(moved, before));

    const MetricsFile rest = read_metrics(path);
    REQUIRE(rest.broken == 0);
    for (const auto& line : rest.lines) REQUIRE(line.event.step <= step);
    const MetricsSplit again = split_metrics(path, step, superseded);
    REQUIRE(again.moved == 0);
    REQUIRE(lines_of_file(path) == kept);
    REQUIRE(lines_of_file(superseded) == moved);
  }
  // The mutations are mild enough that both are met.
  CHECK(whole > count / 2);
  CHECK(broken > count / 10);
}

TEST_CASE("mutated results of an evaluation are read or refused with an Error") {
  const uint64_t seed = fuzz_seed();
  CAPTURE(seed);
  const uint64_t count = fuzz_count(2000);
  Mutator mutator(seed);
  const ScratchFolder folder;
  const std::string path = folder / "scalars.json";
  for (uint64_t i = 0; i < count; ++i) {
    const std::string text = mutator.file();
    CAPTURE(i);
    CAPTURE(quoted_yaml(text.substr(0, 2000)));
    write_bytes(path, text);
    const std::string message = message_of([&] { read_scalars_file(path); });
    REQUIRE((message == "no error" || message.starts_with(path + ": ")));
  }
}

}  // namespace metrics_fuzz_test
}  // namespace stepop
