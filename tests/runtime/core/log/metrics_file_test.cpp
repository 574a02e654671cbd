#include "runtime/core/log/metrics_file.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/runtime/core/log/metrics.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace metrics_file_test {

using LastLine = MetricsSplit::LastLine;

const std::string kOne = R"({"step":1,"epoch":0.5,"samples":64,"time":1.25,"train/loss":0.5})";
const std::string kTwo = R"({"step":2,"train/loss":"NaN"})";
const std::string kThree = R"({"step":3,"train/loss":0.25})";

TEST_CASE("an event is one line of JSON, appended") {
  const ScratchFolder folder;
  const std::string path = folder.write("metrics.jsonl", "{\"step\":1}\n");
  {
    Metrics metrics(path);
    write_metrics(metrics,
                  {.step = 100, .epoch = 100.0 / 23, .samples = 6400, .seconds = 1763.20049},
                  {{"train/log_op/loss", 0.25}, {"say \"x\"", 2}});
    write_metrics(metrics, {}, {});
  }
  CHECK(read_bytes(path) ==
        "{\"step\":1}\n"
        "{\"step\":100,\"epoch\":4.347826,\"samples\":6400,\"time\":1763.2,"
        "\"train/log_op/loss\":0.25,\"say \\\"x\\\"\":2.0}\n");
}

TEST_CASE("what JSON cannot tell is a text") {
  const ScratchFolder folder;
  const std::string path = folder.path("metrics.jsonl");
  write_metrics(path, {}, {{"a", std::nan("")}, {"b", INFINITY}, {"c", -INFINITY}});
  CHECK(read_bytes(path).ends_with("\"a\":\"NaN\",\"b\":\"Infinity\",\"c\":\"-Infinity\"}\n"));
}

TEST_CASE("a metrics file that cannot be written is an error with its path") {
  const ScratchFolder folder;
  const std::string path = folder.path("none/metrics.jsonl");
  CHECK(message_of([&] { Metrics metrics(path); }) ==
        "cannot open " + path + ": No such file or directory");
  FailingFiles files;
  Metrics metrics(folder.path("metrics.jsonl"));
  files.leave_room(10);
  CHECK(message_of([&] {
          write_metrics(metrics, {}, {{"a", 1}});
        }) == "cannot write " + folder.path("metrics.jsonl") + ": No space left on device");
  CHECK(read_bytes(folder.path("metrics.jsonl")).empty());
}

TEST_CASE("an event is one write") {
  const ScratchFolder folder;
  Metrics metrics(folder.path("metrics.jsonl"));
  const FailingFiles files;
  write_metrics(metrics, {}, {{"a", 1}, {"b", 2}});
  CHECK(files.count(FileCall::kWrite) == 1);
  metrics.sync();
  CHECK(files.count(FileCall::kFsync) == 2);  // the file, and its name in the folder
}

TEST_CASE("what was written is read back, to the last bit") {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const double third = 1.0 / 3;
  const double infinity = std::numeric_limits<double>::infinity();
  {
    Metrics metrics(path);
    write_metrics(metrics, {.step = 7, .epoch = 0.5, .samples = 448, .seconds = 1.5},
                  {{"a", third}, {"b", 5e-324}, {"c", -0.0}, {"d", 1e300}});
    write_metrics(metrics, {.step = 8},
                  {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}, {"say \"x\"\n", 2}});
    metrics.sync();
  }
  const MetricsFile file = read_metrics(path);
  CHECK(file.broken == 0);
  REQUIRE(file.lines.size() == 2);
  CHECK(file.lines[0].event.step == 7);
  CHECK(file.lines[0].event.epoch == 0.5);
  CHECK(file.lines[0].event.samples == 448);
  CHECK(file.lines[0].event.seconds == 1.5);
  CHECK(file.lines[0].values ==
        OrderedMap<double>{{"a", third}, {"b", 5e-324}, {"c", -0.0}, {"d", 1e300}});
  CHECK(std::signbit(file.lines[0].values.at("c")));
  CHECK(std::isnan(file.lines[1].values.at("a")));
  CHECK(file.lines[1].values.at("b") == infinity);
  CHECK(file.lines[1].values.at("c") == -infinity);
  CHECK(file.lines[1].values.at("say \"x\"\n") == 2);
}

TEST_CASE("Python reads each line as JSON") {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  write_metrics(path, {.step = 7, .epoch = 0.5, .samples = 448, .seconds = 1.5},
                {{"train/ä \"x\"", 0.1}, {"b", std::nan("")}});
  CHECK(run_python("import sys, json; print([json.loads(x) for x in open(sys.argv[1])])", {path}) ==
        "[{'step': 7, 'epoch': 0.5, 'samples': 448, 'time': 1.5, 'train/ä \"x\"': 0.1, "
        "'b': 'NaN'}]\n");
}

TEST_CASE("bad lines are skipped and counted; half a last line is not counted") {
  const ScratchFolder folder;
  const std::string path = folder.write(
      "metrics.jsonl",
      kOne + "\n" + "{\"step\":1,\"tr" + kTwo + "\n\n[1]\n{\"loss\":1}\n{\"step\":1.5}\n" +
          "{\"step\":-1}\n{\"step\":18446744073709551615}\n{\"step\":1,\"loss\":\"low\"}\n" +
          "{\"step\":1,\"loss\":1e999}\n{\"step\":1,\"loss\":null}\n" + std::string(3, '\0') +
          "\n" + kThree + "\n{\"step\":4,\"trai");
  const MetricsFile file = read_metrics(path);
  REQUIRE(file.lines.size() == 2);
  CHECK(file.lines[1].event.step == 3);
  CHECK(file.broken == 10);
}

TEST_CASE("the scalars of an evaluation are one object, else an error says what is wrong") {
  const ScratchFolder folder;
  const auto read = [&](const std::string& text) {
    return message_of([&] { read_scalars_file(folder.write("scalars.json", text)); });
  };
  const std::string path = folder.path("scalars.json");
  CHECK(read(to_json({{"a", 0.1}, {"b", std::nan("")}})) == "no error");
  CHECK(read("{") == path + ": not JSON");
  CHECK(read("[1]") == path + ": not a JSON object");
  CHECK(read("{\"a\": \"low\"}") == path +
                                        ": \"a\": expected a number, \"NaN\", \"Infinity\" or "
                                        "\"-Infinity\", found \"low\"");
  CHECK(read("{\"a\": \"\u202elow\"}").ends_with("found \"\\u202elow\""));
}

TEST_CASE("a last line that lacks nothing but its end counts") {
  const ScratchFolder folder;
  CHECK(read_metrics(folder.write("a", kOne + "\n" + kTwo)).lines.size() == 2);
  CHECK(read_metrics(folder.write("a", "")).lines.empty());
}

TEST_CASE("a file that cannot be read is an error with the reason") {
  const ScratchFolder folder;
  CHECK(message_of([&] { read_metrics(folder / "none"); }) ==
        "cannot read " + folder.path("none") + ": No such file or directory");
  for (const std::string& path : {folder.path()}) {
    const std::string message = "cannot read " + path + ": Is a directory";
    CHECK(message_of([&] { read_metrics(path); }) == message);
    CHECK(message_of([&] { last_lines(path); }) == message);
    CHECK(message_of([&] { read_scalars_file(path); }) == message);
  }
}

using Lines = std::vector<std::string>;

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

/// What split_metrics makes of a file.
struct Split {
  MetricsSplit result;
  std::string kept;
  std::string superseded;
  int calls = 0;
};

Split split(const std::string& content, int64_t step) {
  const ScratchFolder folder;
  const std::string path = folder.write("metrics.jsonl", content);
  const FailingFiles files;
  Split split{split_metrics(path, step, folder / "superseded.jsonl"), read_bytes(path),
              read_bytes(folder / "superseded.jsonl"), files.count()};
  return split;
}

TEST_CASE("lines of later steps move, in their order; the others stay as they are") {
  const Split result = split(kThree + "\n" + kOne + "\n" + kTwo + "\n" + kThree + "\n", 2);
  CHECK(result.kept == kOne + "\n" + kTwo + "\n");
  CHECK(result.superseded == kThree + "\n" + kThree + "\n");
  CHECK(result.result.kept == 2);
  CHECK(result.result.moved == 2);
  CHECK(result.result.broken == 0);
  CHECK(result.result.last_line == LastLine::kWhole);
}

TEST_CASE("without anything to move or to mend nothing is written") {
  for (const std::string& content : {std::string(), kOne + "\n", kOne + "\n\n" + kTwo + "\n"}) {
    const Split result = split(content, 2);
    CHECK(result.kept == content);
    CHECK(result.superseded.empty());
    CHECK(result.result.moved == 0);
    CHECK(result.calls == 0);
  }
  const ScratchFolder folder;
  CHECK(split_metrics(folder / "none", 0, folder / "superseded").kept == 0);
  CHECK(folder.names().empty());
}

TEST_CASE("half a last line is dropped, a whole one gets its end") {
  const Split half = split(kOne + "\n" + kTwo.substr(0, 12), 9);
  CHECK(half.kept == kOne + "\n");
  CHECK(half.superseded.empty());
  CHECK(half.result.last_line == LastLine::kDropped);
  CHECK(half.result.moved == 0);

  const Split whole = split(kOne + "\n" + kTwo, 9);
  CHECK(whole.kept == kOne + "\n" + kTwo + "\n");
  CHECK(whole.result.last_line == LastLine::kEnded);
  CHECK(whole.result.kept == 2);

  const Split later = split(kOne + "\n" + kThree, 1);
  CHECK(later.kept == kOne + "\n");
  CHECK(later.superseded == kThree + "\n");
}

TEST_CASE("every cut of the file leaves its whole lines") {
  const std::string whole = kOne + "\n" + kTwo + "\n" + kThree + "\n";
  for (size_t size = 0; size <= whole.size(); ++size) {
    const Split result = split(whole.substr(0, size), 9);
    CHECK(whole.starts_with(result.kept));
    CHECK(result.kept.size() + kTwo.size() + kOne.size() > size);
    CHECK(result.superseded.empty());
    CHECK(result.result.broken == 0);
  }
}

TEST_CASE("broken lines move as they are") {
  const std::string broken = std::string("\0\xff{", 3) + kTwo;
  const Split result = split(kOne + "\n" + broken + "\n" + kTwo + "\n", 9);
  CHECK(result.kept == kOne + "\n" + kTwo + "\n");
  CHECK(result.superseded == broken + "\n");
  CHECK(result.result.moved == 1);
  CHECK(result.result.broken == 1);
}

TEST_CASE("what was superseded before stays") {
  const ScratchFolder folder;
  const std::string path = folder.write("metrics.jsonl", kOne + "\n" + kTwo + "\n");
  folder.write("superseded", "before\n");
  split_metrics(path, 1, folder / "superseded");
  CHECK(read_bytes(folder / "superseded") == "before\n" + kTwo + "\n");
}

TEST_CASE("whichever call fails, no line is lost, and a second try finishes the split") {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const std::string superseded = folder / "superseded.jsonl";
  const std::string before = kOne + "\n" + kTwo + "\n" + kThree + "\n";
  const std::string after = kOne + "\n";
  const std::string moved = kTwo + "\n" + kThree + "\n";
  int tried = 0;
  for (int number = 1;; ++number) {
    write_bytes(path, before);
    std::filesystem::remove(superseded);
    std::string message;
    {
      FailingFiles files;
      files.shorten_writes(20);
      files.fail(FileCall::kAny, number, ENOSPC);
      message = message_of([&] { split_metrics(path, 1, superseded); });
      if (!files.has_failed()) break;
    }
    ++tried;
    CAPTURE(number);
    const std::string found = read_bytes(path);
    CHECK((found == before || (found == after && read_bytes(superseded) == moved)));
    if (found == before) CHECK(message.ends_with(": No space left on device"));

    split_metrics(path, 1, superseded);
    CHECK(read_bytes(path) == after);
    CHECK(read_bytes(superseded).ends_with(moved));
    CHECK(folder.names() == std::vector<std::string>{"metrics.jsonl", "superseded.jsonl"});
  }
  CHECK(tried > 15);
}

}  // namespace metrics_file_test
}  // namespace stepop
