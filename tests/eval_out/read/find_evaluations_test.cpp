#include "eval_out/read/find_evaluations.h"

#include <doctest/doctest.h>

#include "runtime/core/base/error.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace find_evaluations_test {

TEST_CASE("evaluations are found by their start, then by their step as a number") {
  const ScratchFolder folder;
  folder.write("run/eval/2026-11-21T10-00-00_a/100/outputs.h5", "");
  folder.write("run/eval/2026-11-21T10-00-00_a/20/outputs.h5", "");
  folder.write("run/eval/2026-11-21T10-00-00_a/20/outputs.h5.part", "");
  folder.write("run/eval/2026-11-22T10-00-00_a/3/outputs.h5.part", "");
  folder.write("run/eval/2026-11-22T10-00-00_a/4/scalars.json", "");
  folder.write("run/eval/2026-11-22T10-00-00_a/notes/file", "");
  folder.write("run/eval/2026-11-22T10-00-00_a/5", "a file");
  folder.write("run/eval/file", "");
  const std::string run = folder / "run";
  const auto found = find_evaluations(run);
  REQUIRE(found.size() == 4);
  CHECK(found[0].step == 20);
  CHECK(found[0].start == "2026-11-21T10-00-00_a");
  CHECK(found[0].folder == run + "/eval/2026-11-21T10-00-00_a/20");
  CHECK(found[0].outputs == found[0].folder + "/outputs.h5");
  CHECK(found[1].step == 100);
  CHECK(found[2].outputs == found[2].folder + "/outputs.h5.part");
  CHECK(found[3].step == 4);
  CHECK(found[3].outputs == "");
  CHECK(find_evaluations(folder / "none").empty());

  CHECK(find_outputs(run + "/") == found[1].outputs);  // the newest whole one
  CHECK(find_outputs(run + "/eval/2026-11-21T10-00-00_a") == found[1].outputs);
  CHECK(find_outputs(found[0].folder) == found[0].outputs);
  CHECK(find_outputs(found[0].outputs) == found[0].outputs);
  CHECK(message_of([&] { find_outputs(found[3].folder); }) ==
        found[3].folder +
            ": no outputs in this folder; give the folder of a run that was evaluated, of one of "
            "its evaluations (eval/<time>_<name>/<step>), or an outputs.h5");
}

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
  // An evaluation that is being written, or was killed, is no reason to hide a whole one.
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
                                     ".part holds the rows of an unfinished evaluation");
  CHECK(
      message("empty") ==
      folder.path("empty") +
          ": no outputs in this folder; give the folder of a run that was evaluated, of one of its "
          "evaluations (eval/<time>_<name>/<step>), or an outputs.h5");
}

}  // namespace find_evaluations_test
}  // namespace stepop
