#include "runtime/train/networks/load_network.h"

#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace load_network_test {

at::Tensor output(const std::shared_ptr<Network>& network) {
  return network->forward(at::ones({2, 1, 3, 3}));
}

/// That of the session's own, in evaluation mode.
at::Tensor output(TestRun& run) {
  const at::NoGradGuard no_grad;
  run.session.context().networks.set_training(false);
  return output(run.session.context().network<Network>());
}

TEST_CASE("the network of a run gives what it gave there") {
  TestRun run(trainer_config("num_steps: 6\nckpt_freq: 2"));
  run.train();
  const at::Tensor expected = output(run);
  const auto loaded = load_network(run.root());
  CHECK(at::equal(output(loaded), expected));
  CHECK_FALSE(loaded->is_training());
  CHECK_FALSE(output(loaded).requires_grad());
  CHECK(at::equal(output(load_network(run.checkpoint_path(6))), expected));
  CHECK_FALSE(at::equal(output(load_network(run.root(), {.checkpoint = "2"})), expected));
}

TEST_CASE("Python finds its tensors under the names that they have there") {
  TestRun run(trainer_config("num_steps: 1"));
  run.train();
  const std::string found = run_python(R"(
import sys
from safetensors.torch import load_file
tensors = load_file(sys.argv[1])
state = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
print(*sorted(state), float(state["last.bias"].double().sum()))
)",
                                       {run.root() + "/train/checkpoints/latest.safetensors"});
  std::string expected;
  const auto loaded = load_network(run.root());
  for (const auto& [name, tensor] : tensors_of(*loaded)) expected += name + " ";
  const double sum = tensors_of(*loaded).at("last.bias").sum(at::kDouble).item<double>();
  REQUIRE(found.starts_with(expected));
  CHECK(std::stod(found.substr(expected.size())) == doctest::Approx(sum));
}

TEST_CASE("averages are taken where the run evaluates them") {
  std::string schedule_free = trainer_config("num_steps: 6");
  const size_t begin = schedule_free.find("optimizer:");
  schedule_free.replace(begin, schedule_free.find('\n', begin) - begin,
                        "optimizer: {class: ScheduleFreeAdamW, lr: 0.05}");
  for (const std::string& config :
       {trainer_config("num_steps: 6\nema: {decay: 0.8}\neval_weights: ema"), schedule_free}) {
    TestRun run(config);
    run.train();
    const at::Tensor plain = output(run);
    const at::Tensor averages = [&] {
      const AveragesGuard guard = run.session.context().networks.evaluation_weights();
      return output(run);
    }();
    REQUIRE_FALSE(at::equal(plain, averages));
    CHECK(at::equal(output(load_network(run.root())), averages));
    CHECK(at::equal(output(load_network(run.root(), {.takes_averages = false})), plain));
  }
}

TEST_CASE("what cannot be loaded is told with the path") {
  TestRun run(trainer_config("num_steps: 1"));
  run.train();
  const auto message = [](const std::string& path, const LoadNetworkOptions& options = {}) {
    return message_of([&] { load_network(path, options); });
  };
  const ScratchFolder folder;
  CHECK(message(folder.path()) == folder.path() + ": no run with checkpoints is in this folder");
  CHECK(message(folder / "none.safetensors").find("none.safetensors") != std::string::npos);
  CHECK(message(run.root(), {.checkpoint = "7"}).find("7") != std::string::npos);
  CHECK(message(run.root(), {.network = "generator"}).find("\"generator\"") != std::string::npos);
  struct Other : torch::nn::Module {};
  CHECK(message_of([&] { load_network<Other>(run.root()); }) ==
        run.root() + ": its network is of another type");
}

}  // namespace load_network_test
}  // namespace stepop
