// The program that users call does without LibTorch what needs no tensor, and is not told from the
// whole program.
#include <doctest/doctest.h>

#include <string>

#include "tests/cli/command.h"
#include "tests/places.h"

namespace stepop {
namespace front_test {

/// A config, and a run of it.
void write_run(const ScratchFolder& folder) {
  constexpr const char* kConfig = "optimizer: {class: Adam, lr: 1}\nbatch_size: 4\n";
  folder.write("a.yaml", kConfig);
  folder.write("logs/2026-11-21T10-00-00_a/configs/train_2026-11-21T10-00-00.yaml", kConfig);
  folder.write("logs/2026-11-21T10-00-00_a/train/metrics.jsonl", "{\"step\": 3, \"loss\": 2}\n");
}

/// How many times the loader reports that it loads libtorch_cpu.so for a command.
std::string loads(const ScratchFolder& folder, const std::string& command) {
  return run_in(folder, "rm -f loaded.*; LD_DEBUG=files LD_DEBUG_OUTPUT=loaded stepop " + command +
                            " >printed; grep -h 'calling init: .*libtorch_cpu' loaded.* | wc -l")
      .out;
}

TEST_CASE("what needs no tensor loads no LibTorch, and all else does") {
  const ScratchFolder folder;
  write_run(folder);
  for (const char* command :
       {"", "--help", "help tune", "tune --help", "runs -h", "--version", "completion bash", "runs",
        "runs --best loss --json", "runs --where batch_size=4", "config --paths -b a.yaml",
        "checkpoints logs/2026-11-21T10-00-00_a",
        "compare logs/2026-11-21T10-00-00_a logs/2026-11-21T10-00-00_a", "new one",
        "new two --template gan --project"}) {
    CAPTURE(command);
    CHECK(loads(folder, command) == "0\n");
  }
  CHECK(loads(folder, "list") == "1\n");
  CHECK(loads(folder, "config --keys -b a.yaml") == "1\n");
  folder.write("edflow.yaml", "model: a.B\n");
  CHECK(loads(folder, "new three --from-edflow edflow.yaml") == "1\n");
}

TEST_CASE("what needs no tensor prints what the whole program prints") {
  const ScratchFolder folder;
  write_run(folder);
  const CommandResult result = run_in(folder, R"sh(
whole() (exec -a ')sh" STEPOP_BINARY_DIR R"sh(/stepop' ')sh" STEPOP_BINARY_DIR
                                              R"sh(/stepop_program/stepop' "$@")
check() {
  stepop "$@" >one 2>one.err; echo $? >>one
  whole "$@" >two 2>two.err; echo $? >>two
  cmp one two >&2 && cmp one.err two.err >&2 || echo "in: stepop $*" >&2
  count=$((count + 1))
}
find logs -exec touch -d '5 days ago' {} +  # the age that runs shows
check; check help; check --version; check completion zsh; check completion fish; check help none
for command in $(stepop completion bash | sed -n 's/.*COMP_CWORD == 1.*-W "\([^"]*\)".*/\1/p'); do
  check $command --help
done
echo $count
check runs --where batch_size=4 --show optimizer/lr; check runs --best none; check runs --bst loss
check runs nowhere; check checkpoints logs/*; check checkpoints logs; check runs --where batch_size; check runs -o x; check runs -d -d
check config --paths -b a.yaml --optimizer/lr 2 --x/y '[1]'; check config --paths -b none.yaml
check new; check new 3; check new iterator; check new classifier --template gan; check new Classifier --project
check new logs; check new x --template none; check new NULL
stepop new by_front --project >/dev/null; whole new by_whole --project >/dev/null
stepop new front/same --template gan >/dev/null; whole new whole/same --template gan >/dev/null
diff -r front whole >&2; ls by_front | wc -l | grep -q 5 || ls by_front >&2
check config --paths; check config --paths --keys -b a.yaml; check config --paths -b a.yaml --lr
)sh");
  CHECK(result.err == "");
  CHECK(std::stoi(result.out) > 20);
}

TEST_CASE("the program is found and starts when it is called by a link, and where it was copied") {
  const ScratchFolder folder;
  const CommandResult result = run_in(
      folder, "mkdir bin; ln -s '" STEPOP_BINARY_DIR "/stepop' bin/by_link; cp '" STEPOP_BINARY_DIR
              "/stepop' bin/copied\n"
              "for program in bin/by_link bin/copied; do\n"
              "  $program config -b none.yaml; $program --help | head -1\ndone");
  const std::string error = "stepop: cannot read none.yaml: No such file or directory\n";
  const std::string help = "stepop trains, logs and evaluates models on LibTorch.\n";
  CHECK(result.err == error + error);
  CHECK(result.out == help + help);
}

}  // namespace front_test
}  // namespace stepop
