#include "runtime/log/metrics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace metrics_test {

TEST_CASE("an event is one line of JSON, appended") {
  const ScratchFolder folder;
  const std::string path = folder.write("metrics.jsonl", "{\"step\":1}\n");
  {
    Metrics metrics(path);
    metrics.write({.step = 100, .epoch = 100.0 / 23, .samples = 6400, .seconds = 1763.20049},
                  {{"train/log_op/loss", 0.25}, {"say \"x\"", 2}});
    metrics.write({}, {});
  }
  CHECK(read_bytes(path) ==
        "{\"step\":1}\n"
        "{\"step\":100,\"epoch\":4.347826,\"samples\":6400,\"time\":1763.2,"
        "\"train/log_op/loss\":0.25,\"say \\\"x\\\"\":2.0}\n");
}

TEST_CASE("what JSON cannot tell is a text") {
  const ScratchFolder folder;
  const std::string path = folder.path("metrics.jsonl");
  Metrics(path).write({}, {{"a", std::nan("")}, {"b", INFINITY}, {"c", -INFINITY}});
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
          metrics.write({}, {{"a", 1}});
        }) == "cannot write " + folder.path("metrics.jsonl") + ": No space left on device");
  CHECK(read_bytes(folder.path("metrics.jsonl")).empty());
}

TEST_CASE("an event is one write") {
  const ScratchFolder folder;
  Metrics metrics(folder.path("metrics.jsonl"));
  const FailingFiles files;
  metrics.write({}, {{"a", 1}, {"b", 2}});
  CHECK(files.count(FileCall::kWrite) == 1);
  metrics.sync();
  CHECK(files.count(FileCall::kFsync) == 2);  // the file, and its name in the folder
}

}  // namespace metrics_test
}  // namespace stepop
