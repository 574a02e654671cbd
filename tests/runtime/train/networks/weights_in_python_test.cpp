// What a checkpoint has of a network is complete by its names, for Python and for init_from.
#include <doctest/doctest.h>

#include "tests/python.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace weights_in_python_test {

/// TestDropoutNet of trainer_components.cpp.
constexpr const char* kModule = R"(
import sys, torch
from safetensors.torch import load_file
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(9, 6)
        self.norm = torch.nn.BatchNorm1d(6)
        self.last = torch.nn.Linear(6, 3)
model = Net()
tensors = load_file(sys.argv[1])
)";

TEST_CASE("with averages beside it a network with batch normalization is whole in a checkpoint") {
  TestRun run(trainer_config("num_steps: 2\nema: {decay: 0.9}"));
  run.train();
  const std::string path = run.checkpoint_path(2);
  const std::string lines =
      "print(model.load_state_dict({k[6:]: v for k, v in tensors.items() if "
      "k.startswith('model.')}), int(model.norm.num_batches_tracked))\n"
      "print(model.load_state_dict({k[10:]: v for k, v in tensors.items() if "
      "k.startswith('ema_model.')}), int(model.norm.num_batches_tracked))\n";
  CHECK(run_python(kModule + lines, {path}) ==
        "<All keys matched successfully> 2\n<All keys matched successfully> 2\n");

  TestRun next(trainer_config("num_steps: 2\ninit_from: " + path));
  CHECK(next.session.init_weights() == "model: 9 of 9 tensors from " + path);
  CHECK(differences(next.session.context().networks.tensors("model"),
                    run.session.context().networks.tensors("model")) == "");
}

/// A component of state_components.cpp.
constexpr const char* kTied = R"(
iterator: TestStateTrainer
networks: {encoder: {class: TestStateEncoder}, head: {class: TestStateHead}}
datasets: {train: {class: Synthetic, size: 8, shape: [1, 3, 3], classes: 3}}
encoder_optimizer: SGD
head_optimizer: SGD
batch_size: 4
num_steps: 1
n_data_processes: 0
)";

TEST_CASE("a module that ties its weights takes those of a checkpoint without strict") {
  TestRun run(kTied);
  run.train();
  const std::string path = run.checkpoint_path(1);
  CHECK(run_python(R"(
import sys, torch
from safetensors.torch import load_file
class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(9, 9)
        self.norm = torch.nn.BatchNorm1d(9)
        self.tied = self.first.weight
model = Encoder()
tensors = load_file(sys.argv[1])
left = model.load_state_dict({k[8:]: v for k, v in tensors.items() if k.startswith("encoder.")}, strict=False)
print(left.missing_keys, left.unexpected_keys, torch.equal(model.tied, tensors["encoder.first.weight"]))
)",
                   {path}) == "['tied'] [] True\n");

  TestRun next(std::string(kTied) + "init_from: {network: encoder, path: " + path + "}\n");
  CHECK(next.session.init_weights() == "encoder: 8 of 8 tensors from " + path);
}

}  // namespace weights_in_python_test
}  // namespace stepop
