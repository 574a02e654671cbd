// The state of an optimizer of PyTorch, beside the weights of its network.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mse_loss.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace optimizer_in_file_test {

/// Trains a perceptron of four equal layers, whose modules are registered from the last to the
/// first, and saves it as NectarGAN does; then trains ten steps more.
constexpr const char* kTraining = R"(
import sys, torch
from safetensors.torch import save_file
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Module()
        for i in reversed(range(3)):
            self.layers.add_module(str(i), torch.nn.Linear(4, 4))
        if len(sys.argv) > 4:
            self.layers.get_submodule('1').requires_grad_(False)
    def forward(self, x):
        for i in range(3):
            x = self.layers.get_submodule(str(i))(x if i == 0 else x.relu())
        return x
net = Net()
make = {'adam': lambda p: torch.optim.Adam(p, lr=1e-2, betas=(0.5, 0.999)),
        'amsgrad': lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
        'sgd': lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9)}[sys.argv[2]]
steps = int(sys.argv[3])
optimizer = make(net.parameters())
x, y = torch.randn(8, 4), torch.randn(8, 4)
def step():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
for _ in range(steps):
    step()
torch.save({'state_dict': net.state_dict(), 'optimizer': optimizer.state_dict()}, sys.argv[1] + '/netG.pth.tar')
losses = []
for _ in range(10):
    step()
save_file({'x': x, 'y': y, **net.state_dict()}, sys.argv[1] + '/after.safetensors')
)";

constexpr const char* kConfig = R"(
iterator: Classifier
model: {class: MLP, inputs: 4, hidden: [4, 4], classes: 4}
optimizer: {class: Adam, lr: 1e-2, betas: [0.5, 0.999]}
datasets: {train: {class: Synthetic, shape: [1, 2, 2], classes: 4}}
batch_size: 4
num_steps: 1
n_data_processes: 0
)";

Session session_of(const std::string& path, const std::string& more = "") {
  return {test_config(
              fmt::format("{}init_from: {{path: {}, optimizer: true{}}}\n", kConfig, path, more)),
          true, false, false};
}

/// The weights after ten steps with the data of `after`, as Python's.
State ten_steps(Session& session, const State& after) {
  const auto net = session.context().network<Network>("model");
  Update& update = *session.context().updates.begin()->second;
  for (int i = 0; i < 10; ++i) {
    update.step(at::mse_loss(net->forward(after.at("x")), after.at("y")));
  }
  return session.context().networks.tensors("model");
}

double largest_difference(const State& here, const State& there) {
  double largest = 0;
  for (const auto& [name, tensor] : here) {
    const at::NoGradGuard no_grad;
    largest = std::max(largest, (tensor - there.at(name)).abs().max().item<double>());
  }
  return largest;
}

TEST_CASE("ten steps of Adam after a file of PyTorch are those that PyTorch makes") {
  const ScratchFolder folder;
  run_python(kTraining, {folder.path(), "adam", "7"});
  const State after = load_safetensors(folder.path("after.safetensors")).tensors;
  Session session = session_of(folder.path("netG.pth.tar"));
  CHECK(session.init_weights() ==
        "model: 6 of 6 tensors from " + folder.path("netG.pth.tar") +
            ", by the prefix \"state_dict.\", with the state of optimizer: 6 of 6 parameters, 7 "
            "updates");
  CHECK(session.context().updates.begin()->second->count() == 7);
  CHECK(largest_difference(ten_steps(session, after), after) < 1e-6);
  // The weights alone lead elsewhere.
  Session alone(test_config(std::string(kConfig) + "init_from: " + folder.path("netG.pth.tar")),
                true, false, false);
  alone.init_weights();
  CHECK(largest_difference(ten_steps(alone, after), after) > 1e-3);
}

TEST_CASE("a parameter that was frozen in Python has no state, and begins anew") {
  const ScratchFolder folder;
  run_python(kTraining, {folder.path(), "adam", "7", "frozen"});
  Session session = session_of(folder.path("netG.pth.tar"));
  CHECK(session.init_weights().ends_with("4 of 6 parameters, 7 updates"));
  const State state = session.context().updates.begin()->second->state();
  CHECK(state.at("layers.1.weight.step").item<double>() == 0);
  CHECK(state.at("layers.2.weight.step").item<double>() == 7);
}

TEST_CASE("a state that is not this optimizer's is refused with what was found") {
  const ScratchFolder folder;
  const std::string path = folder.path("netG.pth.tar");
  const auto refused = [&](const std::string& more = "") {
    Session session = session_of(path, more);
    const State before = session.context().networks.tensors("model");
    State copies;
    for (const auto& [name, tensor] : before) copies.emplace(name, tensor.detach().clone());
    const std::string message = message_of([&] { session.init_weights(); });
    CHECK(differences(before, copies) == "");
    const std::string begin = "test.yaml:9: init_from/path: optimizer: true: " + path + ": ";
    CHECK(message.substr(0, begin.size()) == begin);
    return message.substr(std::min(begin.size(), message.size()));
  };
  run_python(kTraining, {folder.path(), "sgd", "7"});
  CHECK(refused() ==
        "\"optimizer\", its optimizer, keeps momentum_buffer for a parameter, and the optimizer "
        "here exp_avg, exp_avg_sq, step; give the class, and options such as `amsgrad`, with which "
        "it was trained");
  run_python(kTraining, {folder.path(), "amsgrad", "7"});
  CHECK(
      refused().starts_with("\"optimizer\", its optimizer, keeps exp_avg, exp_avg_sq, "
                            "max_exp_avg_sq, step for a parameter"));
  run_python(kTraining, {folder.path(), "adam", "0"});
  CHECK(refused() ==
        "\"optimizer\", the state of its optimizer, is empty: it was saved before the first step; "
        "leave out `optimizer: true`");
  const auto change = [&](const std::string& line) {
    run_python(kTraining, {folder.path(), "adam", "7"});
    run_python(
        "import sys, torch\nf = torch.load(sys.argv[1])\n" + line + "\ntorch.save(f, sys.argv[1])",
        {path});
  };
  change("del f['optimizer']");
  CHECK(refused() ==
        "there is no state of an optimizer, a dict with `state` and `param_groups`, beside its "
        "weights; leave out `optimizer: true`");
  change("f['other'] = f['optimizer']");
  CHECK(refused() ==
        "it has the states of 2 optimizers, optimizer, other; a file with one of them is read");
  change("g = f['optimizer']['param_groups']; g.append({'params': [g[0]['params'].pop()]})");
  CHECK(refused() ==
        "\"optimizer\", its optimizer, has 2 groups of parameters; one that was made with "
        "net.parameters() is read");
  change("del f['state_dict']['layers.1.bias']");
  CHECK(refused(", strict: false") ==
        "\"optimizer\", its optimizer, has 6 parameters, and 5 of the file's weights are "
        "parameters of the network; each has to be one, to know which is which");
  change("f['optimizer']['state'][1]['exp_avg'] = torch.zeros(3)");
  CHECK(refused() ==
        "\"optimizer\", its optimizer: exp_avg of layers.2.bias: [3] in the file, [4] here");
  save_safetensors(path, load_safetensors(folder.path("after.safetensors")).tensors);
  CHECK(refused(", strict: false") ==
        "only a file of torch.save has the state of an optimizer of PyTorch");
}

TEST_CASE("the state of an optimizer needs an update that trains the network, or no training") {
  const ScratchFolder folder;
  run_python(kTraining, {folder.path(), "adam", "7"});
  const std::string path = folder.path("netG.pth.tar");
  Session evaluation(
      test_config(std::string(kConfig) + "init_from: {path: " + path + ", optimizer: true}\n"),
      /*train=*/false, false, false);
  CHECK(evaluation.init_weights().ends_with(", by the prefix \"state_dict.\""));
  std::string two = kConfig;
  const std::string net = "{class: MLP, inputs: 4, hidden: [4, 4], classes: 4}";
  two.replace(two.find("model: " + net), net.size() + 7,
              "networks: {model: " + net + ", other: " + net + "}");
  Session session(
      test_config(two + "init_from: {path: " + path + ", network: other, optimizer: true}\n"), true,
      false, false);
  CHECK(
      message_of([&] { session.init_weights(); }) ==
      "test.yaml:9: init_from/path: optimizer: true: the network \"other\" is trained by none; it "
      "has to be one optimizer");
}

}  // namespace optimizer_in_file_test
}  // namespace stepop
