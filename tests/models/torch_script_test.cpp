// A module from Python against the same network in C++: trained with the same data and random
// numbers, every tensor of the run has the same bits.
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/models/module_training.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"
#include "tests/without_clock.h"

namespace stepop {
namespace torch_script_test {

/// What torch_script_nets.py exports, once for all tests.
const ScratchFolder& nets() {
  static const ScratchFolder folder;
  static const bool done = [] {
    // TorchScript reads the source of what it compiles, so Python has to know its file.
    run_python("import runpy, sys; runpy.run_path(sys.argv[2], run_name='__main__')",
               {folder.path(), STEPOP_SOURCE_DIR "/tests/models/torch_script_nets.py"});
    return true;
  }();
  return done ? folder : folder;
}

std::string script(const std::string& name) {
  return "{class: TorchScript, path: " + nets().path(name) + "}";
}

State copied(const State& state) {
  State copy;
  for (const auto& [name, tensor] : state) copy.emplace(name, tensor.clone());
  return copy;
}

/// The names of the tensors that differ after both networks were trained, from the same weights and
/// with the same random numbers. Checkpoint by checkpoint, so that evaluations count, too.
std::string differences_of_trainings(const std::string& a, const std::string& b) {
  TestRun first(module_training(a));
  const Checkpoint start{copied(first.session.context().tracker.save()), first.session.position(),
                         first.session.config_yaml()};
  first.train();
  TestRun second(module_training(b));
  second.session.resume(start, "start");
  second.train();
  CHECK(first.checkpoints() == std::vector<int64_t>{4, 8, 9});
  CHECK(second.checkpoints() == first.checkpoints());
  CHECK(differences(start.tensors, first.checkpoint(9)).find("model.") != std::string::npos);
  std::string names;
  for (const int64_t step : first.checkpoints()) {
    names += differences(first.checkpoint(step), second.checkpoint(step));
  }
  const auto scalars = [](const TestRun& run) {
    std::vector<std::string> lines;
    for (auto& line : run.metrics()) {
      lines.push_back(without_clock(line).dump());
    }
    return lines;
  };
  CHECK((scalars(first) == scalars(second)));
  return names;
}

TEST_CASE("a scripted module trains as the same network in C++ to the bit, dropout included") {
  CHECK(differences_of_trainings(script("scripted.pt"), "{class: TestDropoutNet, inputs: 9}") ==
        "");
}

TEST_CASE("a traced module trains as the same network in C++ to the bit") {
  CHECK(differences_of_trainings(script("traced.pt"),
                                 "{class: MLP, inputs: 9, hidden: [6], classes: 3}") == "");
}

TEST_CASE("a run of a scripted module that resumes ends with the same bits") {
  for (const std::string name : {"scripted.pt", "Smooth.pt"}) {
    CAPTURE(name);
    const std::string yaml = module_training(script(name), "ckpt_freq: 3");
    TestRun whole(yaml);
    whole.train();
    const State expected = whole.checkpoint(9);
    TestRun resumed(yaml, whole, 3);
    resumed.train();
    CHECK(differences(expected, resumed.checkpoint(9)) == "");
  }
}

Network& network_of(const TestRun& run) { return *run.session.context().network<Network>(); }

/// Whether two forward passes of the same images differ.
bool is_random(const std::string& model, bool training) {
  const TestRun run(module_training(model));
  run.session.context().networks.set_training(training);
  const at::Tensor images = at::ones({4, 1, 3, 3});
  return !network_of(run).forward(images).equal(network_of(run).forward(images));
}

TEST_CASE("a scripted module follows the mode, a traced one keeps its own and that is told") {
  CHECK(is_random(script("scripted.pt"), true));
  CHECK_FALSE(is_random(script("scripted.pt"), false));
  CHECK(is_random(script("traced_training.pt"), false));
  CHECK_FALSE(is_random(script("traced_evaluation.pt"), true));

  const auto warnings = [](const std::string& model) {
    return TestRun(module_training(model)).session.warnings();
  };
  const auto keeps = [](const std::string& file, const std::string& mode) {
    return "model: " + nets().path(file) + ": exported in " + mode +
           " mode, which it keeps (batch_norm, dropout): torch.jit.script follows the mode, "
           "torch.jit.trace does not";
  };
  CHECK(warnings(script("scripted.pt")) == "");
  CHECK(warnings(script("traced.pt")) == "");
  CHECK(warnings(script("traced_training.pt")) == keeps("traced_training.pt", "training"));
  CHECK(warnings(script("traced_evaluation.pt")) == keeps("traced_evaluation.pt", "evaluation"));
}

TEST_CASE("one value for batch normalization is refused, also in a trace, which has no check") {
  for (const char* file : {"scripted.pt", "traced_training.pt"}) {
    CAPTURE(file);
    const TestRun run(module_training(script(file)));
    run.session.context().networks.set_training(true);
    const State before = copied(run.session.context().networks.tensors("model"));
    const std::string said = message_of([&] { network_of(run).forward(at::ones({1, 1, 3, 3})); });
    CHECK(said.find("Expected more than 1 value per channel when training, got input size") !=
          std::string::npos);
    // Python counts before it normalizes, too.
    CHECK(differences(before, run.session.context().networks.tensors("model")) ==
          "norm.num_batches_tracked ");
  }
}

TEST_CASE("a buffer that forward assigns to is the network's, and a graph keeps the one it used") {
  const TestRun run(module_training(script("Assigning.pt")));
  Network& network = network_of(run);
  const auto state = [&] { return run.session.context().networks.tensors("model"); };
  const at::Tensor x = at::ones({1, 2});
  network.forward(x).sum().backward();
  const State after = state();
  CHECK(after.at("scale").item<float>() == 1.5f);
  // y = (W W x + b) s, with the sum of its elements as the loss: dL/dW = s (1 (W x)^T + W^T 1 x^T).
  const at::Tensor weight = after.at("first.weight").detach();
  const at::Tensor ones = at::ones({2, 1});
  const at::Tensor gradient = 3.0 * (ones.mm(weight.mm(ones).t()) + weight.t().mm(ones).mm(x));
  CHECK(at::allclose(after.at("first.weight").grad(), gradient));

  // The weights that Python tied are one parameter; what it froze is none of the optimizer's.
  CHECK(after.at("first.weight").is_same(after.at("second.weight")));
  CHECK(run.session.context().updates.begin()->second->optimizer().parameters().size() == 1);
  CHECK_FALSE(after.at("second.bias").requires_grad());

  // Restored, the script computes with it.
  State older = copied(after);
  older["scale"].fill_(8);
  State prefixed;
  for (const auto& [name, tensor] : older) prefixed.emplace("model." + name, tensor);
  run.session.context().tracker.load("model", prefixed);
  network.forward(x);
  CHECK(state().at("scale").item<float>() == 4.0f);

  CHECK(run.session.warnings() ==
        "model: " + nets().path("Assigning.pt") +
            ": forward changes calls, which no checkpoint holds: a resume begins with what the "
            "file has; register_buffer makes a tensor part of the state");
}

TEST_CASE("what moves a network moves the tensors of its script") {
  const TestRun run(module_training(script("scripted.pt")));
  Network& network = network_of(run);
  network.to(at::kDouble);
  CHECK((network.forward(at::ones({2, 9}, at::kDouble)).scalar_type() == at::kDouble));
  CHECK((network.named_buffers()["norm.running_mean"].scalar_type() == at::kDouble));
}

TEST_CASE("several networks may be modules from Python, and further arguments have defaults") {
  const std::string yaml = module_training(script("traced.pt"));
  const size_t begin = yaml.find("model:");
  const TestRun run(std::string(yaml).replace(
      begin, yaml.find('\n', begin) - begin,
      "networks: {model: " + script("traced.pt") + ", scale: " + script("Optional.pt") + "}"));
  const auto scale = run.session.context().network<Network>("scale");
  CHECK(scale->forward(at::ones({1})).item<float>() == 2.0f);
}

/// What a model from that file is refused with.
std::string refused(const std::string& name) {
  const std::string path = nets().path(name);
  std::string text = message_of([&] { TestRun(module_training(script(name))); });
  const size_t place = text.find(path);
  return place == std::string::npos ? text : text.erase(place, path.size() - name.size());
}

TEST_CASE("a file that is not TorchScript is told for what it is") {
  nets();
  save_safetensors(nets().path("weights.safetensors"), {{"weight", at::ones({2})}}, {});
  nets().write("text.pt", "class Net(nn.Module):\n");
  const auto is = [](const std::string& name, const std::string& what) {
    return "test.yaml:2: model/path: " + name + ": this is " + what +
           ", not TorchScript; export the module in Python: "
           "torch.jit.script(module).save(\"net.pt\")";
  };
  CHECK(refused("none.pt") == "test.yaml:2: model/path: no such file: none.pt");
  CHECK(refused("saved.pt") == is("saved.pt", "a pickle that torch.save wrote"));
  CHECK(refused("old.pt") == is("old.pt", "a pickle, as an old torch.save wrote it"));
  CHECK(refused("exported.pt2") == is("exported.pt2", "a program of torch.export"));
  CHECK(refused("weights.safetensors") ==
        is("weights.safetensors",
           "a safetensors file, which holds weights and no code (init_from takes weights)"));
  CHECK(refused("text.pt") == is("text.pt", "no archive of PyTorch's"));
  CHECK(refused("empty.pt") == is("empty.pt", "an empty file"));
  CHECK(refused("cut.pt") == is("cut.pt", "an archive that is damaged or cut short"));
}

TEST_CASE("a module that is no network from one tensor to one tensor") {
  const std::string place = "test.yaml:2: model/path: ";
  CHECK(refused("Two.pt") ==
        place +
            "Two.pt: forward takes (x: Tensor, time: float); a network is given one tensor: "
            "export a module whose forward takes (x: Tensor), more only with defaults");
  CHECK(refused("Pair.pt") ==
        place + "Pair.pt: forward returns Tuple[Tensor, Tensor]; a network returns one tensor");
  CHECK(refused("AssigningParameter.pt") ==
        place +
            "AssigningParameter.pt: forward assigns to the parameter weight: parameters are "
            "changed by optimizers; make it a buffer");
  // What it returns may be known only when it runs.
  const std::string path = nets().path("Either.pt");
  const auto network =
      models().build(test_config("model: {class: TorchScript, path: " + path + "}"), "model");
  const std::string text = message_of(
      [&] { std::dynamic_pointer_cast<Network>(network)->forward(at::ones({2}).neg()); });
  CHECK(text == path + ": forward returned no tensor but a None");
}

TEST_CASE("what a script throws is told with its file and the lines of its code") {
  const TestRun run(module_training(script("traced.pt")));
  const std::string text = message_of([&] { network_of(run).forward(at::ones({2, 5})); });
  CHECK(text.starts_with(nets().path("traced.pt") + ": The following operation failed"));
  CHECK(text.find("mat1 and mat2 shapes cannot be multiplied (2x5 and 9x6)") != std::string::npos);
  CHECK(text.find("C++") == std::string::npos);
}

}  // namespace torch_script_test
}  // namespace stepop
