// Steps per second of the loop against those of other frameworks on the same data: LibTorch by
// hand, and in Python PyTorch, Lightning, ignite and JAX. Each runs in a process of its own beside
// this one, and waits while the others are measured.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/hand_written.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

constexpr const char* kLoops = STEPOP_SOURCE_DIR "/tests/bench/framework_loops.py";

/// The Python that STEPOP_BENCH_PYTHON in the environment names: the tree's own lacks most
/// frameworks.
std::string frameworks_python() {
  const char* named = std::getenv("STEPOP_BENCH_PYTHON");
  return named != nullptr ? named : python();
}

/// The kinds of framework_loops.py, and what rows call them.
const std::vector<std::pair<std::string, std::string>> kFrameworks = {
    {"adam", "PyTorch, Adam"},
    {"fused", "PyTorch, Adam(fused=True)"},
    {"compiled", "PyTorch, compiled, fused"},
    {"lightning", "Lightning, fused"},
    {"ignite", "ignite, fused"},
    {"jax", "JAX, optax.adam, jit"}};

/// Those of which all packages are installed; it prints the others.
std::vector<std::pair<std::string, std::string>> installed() {
  Process process({frameworks_python(), "-B", kLoops, "kinds"}, ".");
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [kind, name] : kFrameworks) {
    if (process.read_line() == kind) {
      fmt::print("  not measured, as its packages are not installed: {}\n", name);
    } else {
      found.emplace_back(kind, name);
    }
  }
  return found;
}

void compare(const std::vector<std::pair<std::string, std::string>>& frameworks,
             const std::string& folder, int64_t batch_size) {
  const int64_t steps = steps_per_round(batch_size);
  const std::string yaml = lenet_yaml(
      batch_size,
      fmt::format("{{class: Idx, images: {0}/images.idx, labels: {0}/labels.idx}}", folder));
  using Loop = HandWrittenLoop;
  Loop torch_optim(yaml, Loop::Data::kGathered, Loop::Optimizer::kTorchOptim);
  Loop fused(yaml, Loop::Data::kGathered, Loop::Optimizer::kFusedKernel);
  std::vector<std::string> names = {"LibTorch by hand, torch::optim::Adam",
                                    "LibTorch by hand, fused kernel"};
  std::vector<Portion> others = {[&] { return torch_optim.time_steps(steps); },
                                 [&] { return fused.time_steps(steps); }};
  std::vector<std::unique_ptr<Process>> processes;
  for (const auto& [kind, name] : frameworks) {
    processes.push_back(std::make_unique<Process>(
        std::vector<std::string>{frameworks_python(), "-B", kLoops, kind, folder,
                                 std::to_string(batch_size), std::to_string(at::get_num_threads())},
        "."));
    const auto ask = [&process = *processes.back(), steps] {
      return process.ask_seconds(std::to_string(steps));
    };
    ask();  // imports and compiles
    others.emplace_back(ask);
    names.push_back(name);
  }
  print_steps(batch_size, take_turns_with_training(yaml, steps, /*rounds=*/60, others), names);
}

}  // namespace

void bench_frameworks() {
  print_header("Training steps: LeNet, digits of 28x28, Adam; against other frameworks");
  const ScratchFolder folder;
  Process data({frameworks_python(), "-B", kLoops, "data", folder.path()}, ".");
  if (data.wait() != 0) throw std::runtime_error("framework_loops.py cannot write the images");
  const auto frameworks = installed();
  for (const int64_t batch_size : {4, 64}) compare(frameworks, folder.path(), batch_size);
}

}  // namespace stepop::bench
