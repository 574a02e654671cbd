#include "eval_out/find_outputs.h"

#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace {

TEST_CASE("a file, an evaluation and a run lead to outputs") {
  const ScratchFolder folder;
  const auto make = [&](const std::string& name) { return folder.write(name, ""); };
  const std::string first = make("run/eval/2026-01-01T10-00-00_a/9/outputs.h5");
  CHECK(find_outputs(first) == first);
  CHECK(find_outputs(folder.path("run/eval/2026-01-01T10-00-00_a/9/")) == first);
  CHECK(find_outputs(folder.path("run")) == first);
  const std::string later_step = make("run/eval/2026-01-01T10-00-00_a/10/outputs.h5");
  CHECK(find_outputs(folder.path("run")) == later_step);
  const std::string later_time = make("run/eval/2026-01-02T10-00-00_a/2/outputs.h5");
  CHECK(find_outputs(folder.path("run/")) == later_time);
  // One that is being written, or was killed, is no reason to hide a whole one.
  const std::string part = make("run/eval/2026-01-03T10-00-00_a/3/outputs.h5.part");
  CHECK(find_outputs(folder.path("run")) == later_time);
  CHECK(find_outputs(part) == part);
  CHECK(find_outputs(folder.path("run/eval/2026-01-03T10-00-00_a/3")) == part);
  make("other/eval/2026-01-03T10-00-00_a/3/outputs.h5.part");
  CHECK(find_outputs(folder.path("other")).ends_with("/3/outputs.h5.part"));
}

TEST_CASE("a path without outputs is refused") {
  const ScratchFolder folder;
  folder.write("empty/file", "");
  folder.write("outputs.h5.part", "");
  const auto message = [&](const std::string& name) {
    return message_of([&] { find_outputs(folder.path(name)); });
  };
  CHECK(message("none") == folder.path("none") + ": no such file or folder");
  CHECK(message("outputs.h5") == folder.path("outputs.h5") + ": no such file; " +
                                     folder.path("outputs.h5") +
                                     ".part holds the rows of an evaluation that did not come to "
                                     "its end");
  CHECK(message("empty") ==
        folder.path("empty") +
            ": no outputs of an evaluation: looked for outputs.h5 in it, and for "
            "eval/<time>_<name>/<step>/outputs.h5 as a run has them");
}

}  // namespace
}  // namespace stepop
