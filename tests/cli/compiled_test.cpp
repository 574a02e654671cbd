// Trainings with compiled passes by the real program: against a loop of PyTorch, killed and
// resumed, in two processes, and of a network in C++.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/cli/exported_run.h"
#include "tests/same_state.h"

namespace stepop {
namespace cli_compiled_test {

using namespace exported_run;

constexpr const char* kExport =
    "export PYTHONPATH='" STEPOP_SOURCE_DIR "/eval_out/python'; '" STEPOP_SOURCE_DIR
    "/.venv/bin/python3' -B -m stepop.eval.export ";

/// exported_run's folder, in which plain.pt2 has compiled passes; once for all tests.
const ScratchFolder& compiled_files() {
  static const ScratchFolder folder;
  static const std::string said = [] {
    std::filesystem::copy(files().path(), folder.path());
    return run_well(folder, std::string(kExport) + "plain.pt2 --compile -o plain.pt2").out;
  }();
  CHECK(said.find("plain.pt2: compiled for this processor in float32: ") != std::string::npos);
  CHECK(said.find("model: {class: Exported, path: plain.pt2, compiled: true}") !=
        std::string::npos);
  return folder;
}

/// Copies of the files, which a training may fill.
struct CompiledFolder : ScratchFolder {
  CompiledFolder() { std::filesystem::copy(compiled_files().path(), path()); }
};

TEST_CASE("20 steps of compiled passes have the losses and weights of PyTorch's own loop") {
  check_like_python("float32", "--model/compiled true", 1e-4, compiled_files());
}

TEST_CASE("a part of a network with compiled passes is frozen by its name in Python") {
  check_like_python(
      "frozen", "--model/compiled true --freeze '[{match: \"^model\\\\.features\\\\.0\\\\.\"}]'",
      1e-4, compiled_files());
}

TEST_CASE("killed twice and resumed, a training of compiled passes ends with the same bits") {
  check_killed_twice("--model/compiled true", compiled_files());
}

TEST_CASE("20 steps with dropout draw the random numbers of PyTorch's own loop") {
  const CompiledFolder compiled;
  const std::string line =
      std::string(kExport) + "net.py:Dropped --example image=4,1,8,8 -o dropped.pt2 --compile";
  run_well(compiled, line);
  const ScratchFolder plain;
  std::filesystem::copy(compiled.path(), plain.path());
  check_dropout_like_python("--model/compiled true", compiled);
  check_dropout_like_python("", plain);
}

TEST_CASE("two processes train with compiled passes, on batches of any size, and resume") {
  const std::string train =
      "stepop -n a -b a.yaml -t --model/compiled true --processes 2 --batch_size 6 ";
  const CompiledFolder whole, parts;
  run_well(whole, train);
  run_well(parts, train + "--stop_at 7");
  run_well(parts, "stepop -p logs/* -t --stop_at null");
  CHECK(differences(state_after(parts, 20), state_after(whole, 20)) == "");
}

TEST_CASE("a checkpoint of compiled passes goes on without them, under the same names") {
  const CompiledFolder folder;
  run_well(folder, "stepop -n a -b a.yaml -t --model/compiled true --stop_at 10");
  const State before = state_after(folder, 10);
  run_well(folder, "stepop -p logs/* -t --stop_at null --model/compiled false");
  const State after = state_after(folder, 20);
  REQUIRE(before.size() == after.size());
  for (const auto& [name, tensor] : before) CHECK(after.contains(name));
  check_values_like_python("float32", folder, 1e-4);
}

TEST_CASE("a network in C++ trains on with compiled passes of its export") {
  const CompiledFolder folder;
  const std::string in_cpp = "--model '{class: MLP, inputs: 64, hidden: [16]}' ";
  run_well(folder, "stepop -n a -b a.yaml -t --init_from layers.pth --stop_at 10 " + in_cpp);
  run_well(folder, "stepop export logs/* -o mlp.pt2");
  run_well(folder, std::string(kExport) + "mlp.pt2 --compile -o mlp.pt2");
  run_well(folder,
           "stepop -p logs/* -t --stop_at null --model '{class: Exported, path: mlp.pt2, "
           "compiled: true}'");
  const State compiled = state_after(folder, 20);
  const CompiledFolder other;
  run_well(other, "stepop -n a -b a.yaml -t --init_from layers.pth " + in_cpp);
  for (const auto& [name, tensor] : state_after(other, 20)) {
    CAPTURE(name);
    REQUIRE(compiled.contains(name));
    CHECK(at::allclose(compiled.at(name).to(at::kDouble), tensor.to(at::kDouble), 1e-4, 1e-4));
  }
}

}  // namespace cli_compiled_test
}  // namespace stepop
