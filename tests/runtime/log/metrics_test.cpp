#include "runtime/log/metrics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

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
        path + ": cannot open the metrics: No such file or directory");
}

}  // namespace
}  // namespace stepop
