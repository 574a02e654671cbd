// Files, folders and networks that are not as usual are one sentence, soon.
#include <doctest/doctest.h>

#include <string>

#include "tests/cli/command.h"
#include "tests/cli/small_training.h"

namespace stepop {
namespace surroundings_test {

const std::string kConfig = small_training("{class: Synthetic, size: 64, shape: [1, 8, 8]}");
const std::string kTrain = "stepop -n a -t --num_steps 1 -b ";

TEST_CASE("a FIFO that nobody writes to is refused, and others are read as files are") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfig);
  const CommandResult alone = run_in(
      folder, "mkfifo f.yaml; timeout -k 1 20 '" STEPOP_BINARY_DIR "/stepop' -n a -t -b f.yaml");
  CHECK(alone.exit_code == 2);
  CHECK(alone.err == "stepop: cannot read f.yaml: it is a FIFO, and no program writes to it\n");
  const CommandResult written = run_in(folder, "cat c.yaml > f.yaml & " + kTrain + "f.yaml");
  CHECK(written.err == "");
  CHECK(written.exit_code == 0);
  const std::string config = run_in(folder, "stepop config -b c.yaml").out;
  for (const std::string way :
       {"<(sleep 1; cat c.yaml)", "<(cat c.yaml; sleep 1)", "/dev/stdin < <(cat c.yaml)",
        "/dev/stdin < c.yaml", "<(head -c 99 c.yaml; sleep 1; tail -c +100 c.yaml)"}) {
    CAPTURE(way);
    CHECK(run_in(folder, "stepop config -b " + way).out == config);
  }
}

TEST_CASE("a signal ends the wait for a program that writes nothing") {
  const ScratchFolder folder;
  const CommandResult result =
      run_in(folder, "mkfifo f.yaml; sleep 30 > f.yaml & writer=$!; sleep 0.1; '" STEPOP_BINARY_DIR
                     "/stepop' -n a -t -b f.yaml & sleep 1.5; kill -TERM $!; wait $!; code=$?\n"
                     "kill $writer; exit $code");
  CHECK(result.exit_code != 0);
  CHECK(only_run(folder).empty());
}

TEST_CASE("links that lead to themselves are named") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfig);
  const CommandResult config = run_in(folder, "ln -s l.yaml l.yaml; " + kTrain + "l.yaml");
  CHECK(config.exit_code == 2);
  CHECK(config.err == "stepop: cannot read l.yaml: Too many levels of symbolic links\n");
  const CommandResult logs = run_in(folder, "ln -s l l; " + kTrain + "c.yaml --logs l");
  CHECK(logs.exit_code == 1);
  CHECK(logs.err == "stepop: cannot make the folder l: a link that leads to no folder is there\n");
}

TEST_CASE(
    "a current folder that was removed, or lies too deep, is said before LibTorch is loaded") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfig);
  const std::string train = kTrain + "'" + folder.path("c.yaml") + "'";
  const CommandResult removed = run_in(folder, "mkdir gone; cd gone; rmdir ../gone; " + train);
  CHECK(removed.exit_code == 2);
  CHECK(removed.err == "stepop: the current folder was removed: cd to another one\n");
  const CommandResult deep =
      run_in(folder,
             "name=$(printf 'd%.0s' {1..200}); for i in {1..25}; do mkdir $name; cd $name; done\n" +
                 train + "; code=$?; cd '" + folder.path() + "'; rm -rf ./ddd*; exit $code");
  CHECK(deep.exit_code == 2);
  CHECK(deep.err ==
        "stepop: the path of the current folder has more than 4095 bytes, with which LibTorch does "
        "not start: cd to another one\n");
}

TEST_CASE("processes that cannot reach each other at the loopback are refused at once") {
  const ScratchFolder folder;
  folder.write("c.yaml", kConfig);
  const CommandResult result =
      run_in(folder, "unshare -rn true || exit 77; unshare -rn '" STEPOP_BINARY_DIR
                     "/stepop' -n a -t -b c.yaml --processes 2");
  if (result.exit_code == 77) return;  // a container that allows no network of one's own
  CHECK(result.exit_code == 1);
  CHECK(result.err ==
        "stepop: --processes: processes cannot reach each other at 127.0.0.1: Network is "
        "unreachable; `ip link set lo up` turns the loopback on\n");
  CHECK(only_run(folder).empty());
}

}  // namespace surroundings_test
}  // namespace stepop
