// Networks of Python with compiled passes: what they compute, what is refused, damaged files.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/headeronly/version.h>
#include <torch/nn/module.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/network_alternatives.h"
#include "runtime/train/networks/networks.h"
#include "tests/message_of.h"
#include "tests/models/exported_nets.h"
#include "tests/same_state.h"
#include "tests/zip_entries.h"

namespace stepop {
namespace compiled_test {

using Json = nlohmann::json;

constexpr const char* kCompiled = ", compiled: true";

/// The exported networks, some with compiled passes; once for all tests, also where it fails.
const ScratchFolder& nets() {
  static const ScratchFolder& folder = exported_nets();
  static const std::string failure = [] {
    try {
      run_python(
          "import runpy, sys; sys.argv = sys.argv[3:]; runpy.run_path(sys.argv[0], "
          "run_name='__main__')",
          {"-", "-", STEPOP_SOURCE_DIR "/tests/models/compiled_nets.py", folder.path(),
           STEPOP_SOURCE_DIR "/eval_out/python", "tied", "two", "drops", "blocks",
           "drops:bfloat16"});
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  if (!failure.empty()) throw std::runtime_error(failure);
  return folder;
}

TEST_CASE("compiled passes compute what the network computes in PyTorch, in both modes") {
  for (const char* name : {"tied", "two", "drops", "blocks"}) {
    CAPTURE(name);
    check_network(nets().path(name), kCompiled, 1e-3, 1e-6);
  }
}

TEST_CASE("networks in STEPOP_ZOO that have compiled passes compute what they compute in PyTorch") {
  const char* folder = std::getenv("STEPOP_ZOO");
  if (folder == nullptr) return;  // exported_zoo.py and compiled_nets.py make them
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pt2") continue;
    const std::string name = entry.path().stem();
    MESSAGE(name);
    check_network(folder + ("/" + name), kCompiled, 1e-3, 1e-6);
  }
}

/// The parameters are read where they are: a change of them is seen without a copy.
TEST_CASE("compiled passes read the parameters of the network, and write its buffers") {
  const auto net = exported(nets().path("drops"), kCompiled);
  net->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::randn({5, 1, 3, 3});
  const at::Tensor before = run_exported(*net, {input})[0];
  for (auto& parameter : net->parameters()) parameter.zero_();
  CHECK_FALSE(at::equal(run_exported(*net, {input})[0], before));
  CHECK(run_exported(*net, {input})[0].abs().max().item<double>() == 0);
  const at::Tensor mean = net->named_buffers()["norm.running_mean"];
  const at::Tensor old = mean.clone();
  net->named_parameters()["first.bias"].fill_(1);
  net->train();
  run_exported(*net, {input});
  CHECK_FALSE(at::equal(mean, old));
}

/// Both are left to the graph.
TEST_CASE("gradients of inputs, and those of an evaluation, are those of the graph, to the bit") {
  const auto gradients = [](const std::string& more, bool training) {
    seed_generators(3, c10::kCPU);
    const auto net = exported(nets().path("drops"), more);
    net->train(training);
    const at::Tensor input = at::randn({16, 1, 3, 3}).requires_grad_(training);
    run_exported(*net, {input})[0].square().sum().backward();
    std::vector<at::Tensor> found;
    if (training) found.push_back(input.grad());
    for (const auto& parameter : net->parameters()) found.push_back(parameter.grad());
    return found;
  };
  for (const bool training : {true, false}) {
    CAPTURE(training);
    const auto graph = gradients("", training);
    const auto compiled = gradients(kCompiled, training);
    REQUIRE(graph.size() == compiled.size());
    CHECK(graph.front().abs().max().item<double>() > 0.1);
    for (size_t i = 0; i < graph.size(); ++i) CHECK(at::equal(graph[i], compiled[i]));
  }
}

TEST_CASE("a graph of compiled passes that is walked after an update raises PyTorch's error") {
  const auto net = exported(nets().path("two"), kCompiled);
  net->train();
  const auto outputs = run_exported(*net, {at::randn({4, 3}), at::randn({4, 5})});
  outputs[0].sum().backward();
  const auto drops = exported(nets().path("drops"), kCompiled);
  drops->train();
  const at::Tensor loss = run_exported(*drops, {at::randn({4, 1, 3, 3})})[0].square().sum();
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : drops->parameters()) parameter.add_(1);
  }
  CHECK(message_of([&] { loss.backward(); }).find("modified by an inplace operation") !=
        std::string::npos);
}

/// Inductor expects results of convolutions in an order in memory that oneDNN would choose.
TEST_CASE("compiled passes compute what the graph computes without oneDNN, at any size") {
  const bool was_on = at::globalContext().userEnabledMkldnn();
  const std::vector<std::vector<int64_t>> sizes = {
      {4, 4, 6, 6}, {16, 4, 6, 6}, {40, 4, 6, 6}, {3, 4, 9, 5}};
  for (const auto& size : sizes) {
    CAPTURE(size);
    const auto outputs = [&](const std::string& more) {
      const auto net = exported(nets().path("blocks"), more);
      net->train();
      seed_generators(3, c10::kCPU);
      const auto results = run_exported(*net, {at::randn(size)});
      results[0].square().sum().backward();
      return std::vector<at::Tensor>{results[0], net->named_parameters()["last.weight"].grad()};
    };
    at::globalContext().setUserEnabledMkldnn(false);
    const auto ours = outputs(kCompiled);
    const auto theirs = outputs("");
    at::globalContext().setUserEnabledMkldnn(was_on);
    check_close(ours, theirs, 1e-4);
  }
}

TEST_CASE("gradients of an embedding have the same bits each time, with two threads") {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const auto net = exported(nets().path("tied"), kCompiled);
  net->train();
  const at::Tensor tokens = at::randint(20, {64, 7}, at::kLong);
  std::vector<at::Tensor> first;  // gradients
  for (int i = 0; i < 30; ++i) {
    net->zero_grad(/*set_to_none=*/true);
    run_exported(*net, {tokens})[0].square().sum().backward();
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad());
    if (first.empty()) first = gradients;
    for (size_t k = 0; k < gradients.size(); ++k) {
      if (gradients[k].defined()) CHECK(at::equal(gradients[k], first[k]));
    }
  }
  at::set_num_threads(threads);
}

TEST_CASE("a parameter behind a result that no loss takes has no gradient, not one of zeros") {
  const auto net = exported(nets().path("two"), kCompiled);
  net->train();
  const auto outputs = run_exported(*net, {at::randn({4, 3}), at::randn({4, 5})});
  outputs[1].sum().backward();
  for (const auto& parameter : net->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(parameter.value().grad().defined() == parameter.key().starts_with("a."));
  }
}

TEST_CASE("gradients of gradients of compiled passes are refused") {
  const auto net = exported(nets().path("two"), kCompiled);
  net->train();
  const auto outputs = run_exported(*net, {at::randn({4, 3}), at::randn({4, 5})});
  const std::string message = message_of([&] {
    torch::autograd::grad({outputs[0].sum()}, net->parameters(), {}, /*retain_graph=*/true,
                          /*create_graph=*/true, /*allow_unused=*/true);
  });
  CHECK(message.find("two.pt2: gradients of gradients are not compiled: compiled: false") !=
        std::string::npos);
}

/// Without Adam, in which a gradient of rounding alone becomes a whole step.
std::string training_of(const std::string& model) {
  std::string yaml = training_of_exported(model);
  const std::string adam = "{class: Adam, lr: 1e-2}";
  return yaml.replace(yaml.find(adam), adam.size(), "{class: SGD, lr: 1e-1, momentum: 0.9}");
}

std::string model_of(const std::string& name, const std::string& more = kCompiled) {
  return "{class: Exported, path: " + nets().path(name + ".pt2") + more + "}";
}

TEST_CASE("compiled passes train as the graph does, dropout included, and resume to the bit") {
  TestRun whole(training_of(model_of("drops")));
  whole.train();
  TestRun graph(training_of(model_of("drops", "")));
  graph.train();
  const State expected = whole.checkpoint(9);
  for (const auto& [name, tensor] : graph.checkpoint(9)) {
    CAPTURE(name);
    REQUIRE(expected.contains(name));
    check_close({expected.at(name).to(at::kDouble)}, {tensor.to(at::kDouble)}, 1e-3);
  }
  TestRun resumed(training_of(model_of("drops")), whole, 3);
  resumed.train();
  CHECK(differences(expected, resumed.checkpoint(9)) == "");
}

TEST_CASE("passes that were compiled in bfloat16 compute what autocast computes") {
  const auto outputs = [](const std::string& name, const std::string& more) {
    seed_generators(3, c10::kCPU);
    const auto net = exported(nets().path(name), more);
    net->train();
    const AutocastGuard guard(Precision::kBfloat16, c10::kCPU);
    const at::Tensor result = run_exported(*net, {at::randn({64, 1, 3, 3})})[0];
    CHECK((result.scalar_type() == at::kBFloat16));
    result.to(at::kFloat).square().sum().backward();
    const auto parameters = net->named_parameters();
    return std::vector<at::Tensor>{result.to(at::kFloat), parameters["last.weight"].grad(),
                                   parameters["first.weight"].grad()};
  };
  auto ours = outputs("drops-bfloat16", kCompiled);
  auto theirs = outputs("drops", "");
  // Behind the ReLU numbers near zero may fall on its other side, so directions are compared.
  const at::Tensor first = ours.back().flatten();
  const at::Tensor their_first = theirs.back().flatten();
  CHECK(first.dot(their_first).item<double>() >
        0.99 * (first.norm() * their_first.norm()).item<double>());
  ours.pop_back();
  theirs.pop_back();
  check_close(ours, theirs, 0.05);
}

TEST_CASE("settings under which compiled passes would compute something else are refused") {
  const auto refused = [](const std::string& name, const std::string& settings) {
    TestRun run(training_of(model_of(name)) + settings);
    const std::string text = message_of([&] { run.session.check(); });
    const size_t place = text.find(".pt2: ");
    return place == std::string::npos ? text : text.substr(place + 6);
  };
  CHECK(refused("drops", "") == "no error");
  CHECK(refused("drops", "precision: bfloat16\n")
            .starts_with("its passes were compiled in float32, and precision is bfloat16: python "
                         "-m stepop.eval.export "));
  CHECK(refused("drops-bfloat16", "")
            .starts_with("its passes were compiled in bfloat16, and precision is float32: python "
                         "-m stepop.eval.export "));
  CHECK(refused("drops", "checkpoint_modules: first\n") ==
        "checkpoint_modules: the compiled passes have decided what is kept for the backward pass: "
        "leave it out, or compiled: false");
  CHECK(refused("drops-bfloat16", "precision: bfloat16\nfloat32_modules: first\n") ==
        "float32_modules: compiled passes have one precision; torch.autocast(..., enabled=False) "
        "in forward "
        "keeps a part in float32, or compiled: false");
}

TEST_CASE("inputs on another device than the passes' are refused") {
  const auto net = exported(nets().path("two"), kCompiled);
  const auto meta = [](int64_t size) {
    return at::empty({2, size}, at::TensorOptions(at::kFloat).device(at::kMeta));
  };
  CHECK(message_of([&] {
          run_exported(*net, {meta(3), meta(5)});
        })
            .ends_with("two.pt2: its passes were compiled for cpu, and an input is on meta: "
                       "compiled: false"));
}

TEST_CASE("parameters that were frozen at the export, and memory in another order, are refused") {
  const auto net = exported(nets().path("blocks"), kCompiled);
  net->train();
  const at::Tensor input = at::randn({4, 4, 6, 6});
  net->named_parameters()["frozen.weight"].requires_grad_(true);
  CHECK(message_of([&] { run_exported(*net, {input}); })
            .ends_with("blocks.pt2: frozen.weight was frozen when the passes were compiled, and is "
                       "not now"));
  const auto other = exported(nets().path("blocks"), kCompiled);
  other->train();
  {
    const at::NoGradGuard no_grad;
    at::Tensor weight = other->named_parameters()["blocks.0.conv.weight"];
    weight.set_data(weight.contiguous(at::MemoryFormat::ChannelsLast));
  }
  CHECK(message_of([&] { run_exported(*other, {input}); })
            .ends_with("blocks.pt2: blocks.0.conv.weight lies in memory in another order than it "
                       "was compiled for: compiled passes choose it themselves, so without "
                       "channels_last"));
}

TEST_CASE("inputs in any order in memory are taken, those of other types and sizes refused") {
  const auto net = exported(nets().path("blocks"), kCompiled);
  net->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor input = at::randn({4, 4, 6, 6});
  const at::Tensor expected = run_exported(*net, {input})[0];
  CHECK(at::equal(run_exported(*net, {input.contiguous(at::MemoryFormat::ChannelsLast)})[0],
                  expected));
  CHECK(
      message_of([&] { run_exported(*net, {input.to(at::kDouble)}); })
          .ends_with("blocks.pt2: the input 0 was compiled as Float of 4 dimensions, and is Double "
                     "of 4"));
  CHECK(message_of([&] {
          run_exported(*net, {at::ones({2, 3, 6, 6})});
        }).find("it was exported for an input x [*, 4, *, *], and got [2, 3, 6, 6]") !=
        std::string::npos);
}

TEST_CASE("one value for batch normalization is refused with its layer, as without compiling") {
  std::string yaml = training_of(model_of("drops"));
  yaml.replace(yaml.find("size: 29"), 8, "size: 25");
  TestRun run(yaml);
  CHECK(message_of([&] { run.session.check(); })
            .find("drops.pt2: aten::batch_norm of norm (BatchNorm1d): Expected more than 1 value "
                  "per channel when training, got input size [1, 6]") != std::string::npos);
}

TEST_CASE("the other way to compute is proposed, but not for a file that others can write") {
  const ScratchFolder folder;
  const std::string path = folder.path("net.pt2");
  std::filesystem::copy_file(nets().path("two.pt2"), path);
  const auto proposed = [&](const std::string& more) {
    const auto net = exported(folder.path("net"), more);
    return to_yaml(Value(Value::Map(dynamic_cast<NetworkAlternatives&>(*net).alternatives())));
  };
  CHECK(proposed("") == "compiled: true\n");
  CHECK(proposed(kCompiled) == "compiled: false\n");
  std::filesystem::permissions(path, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  CHECK(proposed("") == "{}\n");
  const auto none = exported(nets().path("unet"));
  CHECK(dynamic_cast<NetworkAlternatives&>(*none).alternatives().empty());
}

/// The error of "two" when its archive is changed, from the file's name on.
std::string after(const std::function<void(ZipEntries&, Json&)>& change) {
  static const ZipEntries whole = entries_of(read_bytes(nets().path("two.pt2")));
  const ScratchFolder folder;
  const std::string path = folder.path("net.pt2");
  ZipEntries entries = whole;
  std::string* document = nullptr;
  for (auto& [name, content] : entries) {
    if (name.ends_with("data/compiled/passes.json")) document = &content;
  }
  REQUIRE(document != nullptr);
  Json passes = Json::parse(*document);
  *document = "";
  change(entries, passes);
  for (auto& [name, content] : entries) {
    if (name.ends_with("data/compiled/passes.json")) content = passes.dump();
  }
  write_bytes(path, zipped(entries));
  const std::string text = message_of([&] { exported(folder.path("net"), kCompiled); });
  const size_t place = text.find(path);
  return place == std::string::npos ? text : text.substr(place + path.size());
}

std::string& member(ZipEntries& entries, const std::string& ending) {
  for (auto& [name, content] : entries) {
    if (name.ends_with(ending)) return content;
  }
  throw std::runtime_error(ending + " is missing");
}

TEST_CASE("a file without compiled passes names the command that makes them") {
  const std::string path = nets().path("unet.pt2");
  CHECK(message_of([&] { exported(nets().path("unet"), kCompiled); })
            .ends_with(path + " has no compiled passes: python -m stepop.eval.export " + path +
                       " --compile -o " + path));
}

TEST_CASE("passes for another LibTorch, processor or device name the command that compiles again") {
  const std::string command = "python -m stepop.eval.export ";
  CHECK(after([](ZipEntries&, Json&) {}) == "no error");
  CHECK(after([](ZipEntries&, Json& passes) { passes["torch"] = "2.12.0"; })
            .starts_with(": its passes were compiled for LibTorch 2.12.0, and this is " +
                         std::string(TORCH_VERSION) + ": " + command));
  CHECK(after([](ZipEntries&, Json& passes) { passes["processor"].push_back("avx9000"); })
            .starts_with(": its passes were compiled for a processor that has avx9000, which this "
                         "one has not: " +
                         command));
  CHECK(after([](ZipEntries&, Json& passes) { passes["device"] = "vulkan"; })
            .starts_with(": its passes were compiled for vulkan, which this LibTorch does not "
                         "support: " +
                         command));
  CHECK(after([](ZipEntries&, Json& passes) {
          passes["version"] = 2;
        }).starts_with(": its passes were compiled by another version of stepop: " + command));
}

TEST_CASE("libraries that are cut, changed, swapped or missing are not loaded") {
  const std::string forward = "data/compiled/training_forward.so";
  const std::string other =
      ": " + forward + " is another file than was compiled for it: it is damaged";
  CHECK(after([&](ZipEntries& entries, Json&) {
          std::string& library = member(entries, forward);
          library.resize(library.size() / 2);
        }) == other);
  CHECK(after([&](ZipEntries& entries, Json&) { member(entries, forward)[5000] ^= 1; }) == other);
  CHECK(after([&](ZipEntries& entries, Json&) {
          std::swap(member(entries, forward), member(entries, "training_backward.so"));
        }) == other);
  CHECK(after([&](ZipEntries& entries, Json&) {
          std::erase_if(entries, [&](const auto& entry) { return entry.first.ends_with(forward); });
        }) == ": " + forward + " is missing in it");
}

TEST_CASE("descriptions of passes that cannot be are refused") {
  const auto changed = [](const std::string& pointer, const Json& value) {
    return after([&](ZipEntries&, Json& passes) { passes[Json::json_pointer(pointer)] = value; });
  };
  const std::string training = "/passes/training";
  CHECK(changed("/passes/evaluation/inputs/0/tensor", "nowhere") ==
        ": the tensor nowhere is missing in it");
  CHECK(changed(training + "/inputs/0/type", 99) == ": has the unknown type 99");
  CHECK(changed(training + "/inputs/0/order", {0, 7}) == ": the place 7 is not below 2");
  CHECK(changed(training + "/inputs/0/order", {0, 0}) == ": an order has a dimension twice");
  CHECK(changed(training + "/results", Json::array()) == ": a result of the network is missing");
  CHECK(changed(training + "/forward", Json::array()) == ": a library is missing");
  CHECK(changed(training + "/tangents/0", {{"output", 5}, {"order", {0}}}) ==
        ": the place 5 is not below 2");
  CHECK(changed(training + "/gradients/0", {{"tensor", "x"}, {"tangents", {0}}}) ==
        ": has a gradient of something that it does not take");
  CHECK(changed("/passes", Json::object())
            .starts_with(": is damaged, or of another version of torch.export: "));
}

}  // namespace compiled_test
}  // namespace stepop
