#include "runtime/train/networks/init_from.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>

#include <limits>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace networks_init_from_test {

using Names = std::vector<std::string>;

State with_prefix(const std::string& prefix, const State& state) {
  State prefixed;
  for (const auto& [name, tensor] : state) prefixed.emplace(prefix + name, tensor);
  return prefixed;
}

constexpr const char* kRest =
    "\niterator: Classifier\noptimizer: SGD\n"
    "datasets: {train: {class: Synthetic, shape: [1, 8, 8]}}\n"
    "batch_size: 4\nnum_steps: 1\nn_data_processes: 0\n";
constexpr const char* kLeNet = "model: {class: LeNet, image_size: [8, 8], padding: [2, 2]}\n";
constexpr const char* kTwo =
    "networks: {model: {class: MLP, inputs: 64}, other: {class: MLP, inputs: 4}}\n";

Session session_of(const std::string& model, const std::string& init_from) {
  return {test_config(model + "init_from: " + init_from + kRest), true, false, false};
}

State weights_of(const Session& session, const char* network = "model") {
  State copies;
  for (const auto& [name, tensor] : session.context().networks.tensors(network)) {
    copies.emplace(name, tensor.detach().clone());
  }
  return copies;
}

/// Another state of the same names: every tensor filled with its place in the order.
State numbered(State state) {
  int64_t place = 0;
  for (auto& [name, tensor] : state) tensor = at::full_like(tensor, ++place);
  return state;
}

std::string refused(const std::string& model, const std::string& init_from) {
  return message_of([&] { session_of(model, init_from).init_weights(); });
}

TEST_CASE("names are matched by their prefix and map, shapes and types one by one") {
  const State own = {{"a.w", at::zeros({2, 3})}, {"a.b", at::zeros({3})}, {"c", at::zeros({})}};
  const auto match = [&](const State& file, const NameRules& rules) {
    return match_weights(file, own, rules);
  };
  WeightsMatch found = match(own, {});
  CHECK(found.is_whole());
  CHECK(found.wanted == 3);
  CHECK(found.fitting.size() == 3);
  CHECK(found.conversions.empty());

  // Tensors without the prefix are no concern of ours.
  State file = with_prefix("net.", own);
  file["optimizer.a.w"] = at::zeros({1});
  CHECK(match(file, {"net.", {}}).is_whole());
  CHECK(match(file, {}).left_over == Names({"net.a.b", "net.a.w", "net.c", "optimizer.a.w"}));
  CHECK(match(file, {}).missing == Names({"a.b", "a.w", "c"}));

  // The first beginning that fits is applied, once, after the prefix went.
  file = {{"net.old.w", own.at("a.w")}, {"net.older.b", own.at("a.b")}, {"net.c", own.at("c")}};
  CHECK(match(file, {"net.", {{"old.", "a."}, {"older.", "a."}}}).is_whole());
  CHECK(match(file, {"net.", {{"old", "x"}, {"older.", "a."}}}).unused == Names({"\"older.\""}));
  CHECK(match({{"w", own.at("a.w")}, {"b", own.at("a.b")}, {"c", own.at("c")}},
              {"", {{"c", "c"}, {"", "a."}}})
            .is_whole());
  CHECK(message_of([&] {
          match(with_prefix("y.", own), {"", {{"y.a.w", "z"}, {"y.c", "z"}}});
        }) == "\"y.a.w\" and \"y.c\" both become \"z\"");

  found = match({{"a.w", at::zeros({3, 2})}, {"a.b", at::zeros({3}, at::kLong)}}, {});
  CHECK(found.different == Names({"a.b: int64 [3] in the file, float32 [3] here",
                                  "a.w: [3, 2] in the file, [2, 3] here"}));
  CHECK(found.missing == Names({"c"}));
  found = match({{"a.w", at::zeros({2, 3}, at::kHalf)}, {"c", at::zeros({}, at::kDouble)}}, {});
  CHECK(found.conversions == Names({"float16 to float32", "float64 to float32"}));
}

TEST_CASE("integers and bools are of their own type or refused") {
  const State own = {{"count", at::zeros({}, at::kLong)}, {"mask", at::zeros({2}, at::kBool)}};
  CHECK(match_weights(own, own, {}).is_whole());
  const State file = {{"count", at::zeros({}, at::kInt)}, {"mask", at::zeros({2})}};
  CHECK(match_weights(file, own, {}).different ==
        Names({"count: int32 [] in the file, int64 [] here",
               "mask: float32 [2] in the file, bool [2] here"}));
}

TEST_CASE("a tensor that is tied to one that was found is not missing") {
  const at::Tensor tied = at::zeros({3, 2});
  const State own = {{"decoder.w", tied}, {"encoder.w", tied}, {"other", at::zeros({3, 2})}};
  CHECK(match_weights({{"encoder.w", at::zeros({3, 2})}}, own, {}).missing == Names({"other"}));
}

TEST_CASE("the prefix with which names would fit is found") {
  const State own = {{"a.w", at::zeros({1})}, {"b", at::zeros({1})}};
  CHECK(nearest_prefixes(with_prefix("module.net.", own), own).first == Names{"module.net."});
  CHECK(nearest_prefixes(with_prefix("module.net.", own), own).second == 2);
  CHECK(nearest_prefixes(own, own).first == Names{""});
  State twice = with_prefix("params.", own);
  twice.merge(with_prefix("params_ema.", own));
  CHECK(nearest_prefixes(twice, own).first == Names{"params.", "params_ema."});
  CHECK(nearest_prefixes({{"x", at::zeros({1})}, {"y.z.", at::zeros({1})}}, own).second == 0);
}

TEST_CASE("weights of a PyTorch module come in, of every floating type") {
  const ScratchFolder folder;
  run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/train/loop/torch_lenet.py") + R"(
import sys
from safetensors.torch import save_file
for name in ["float32", "float16", "bfloat16", "float64"]:
    tensors = {k: v.to(getattr(torch, name)) for k, v in model.state_dict().items()}
    save_file(tensors, f"{sys.argv[1]}/{name}.safetensors")
    save_file({k: v.float() for k, v in tensors.items()}, f"{sys.argv[1]}/{name}.expected")
    if name == "float32":
        images = torch.arange(2 * 64).reshape(2, 1, 8, 8) / 64 - 1
        save_file({"images": images, "logits": model(images)}, f"{sys.argv[1]}/forward")
)",
             {folder.path()});
  for (const std::string type : {"float32", "float16", "bfloat16", "float64"}) {
    CAPTURE(type);
    const std::string file = folder / (type + ".safetensors");
    Session session = session_of(kLeNet, file);
    const std::string report = session.init_weights();
    const std::string converted =
        type == "float32" ? "" : ", converted: 10 " + type + " to float32";
    CHECK(report == "model: 10 of 10 tensors from " + file + converted);
    // Python's own conversion is the reference.
    const State expected = load_safetensors(folder / (type + ".expected")).tensors;
    CHECK(differences(weights_of(session), expected) == "");
    if (type != "float32") continue;
    const State forward = load_safetensors(folder / "forward").tensors;
    const at::NoGradGuard no_grad;
    const at::Tensor logits = session.context().network<Network>()->forward(forward.at("images"));
    CHECK((logits - forward.at("logits")).abs().max().item<double>() < 1e-5);
  }
}

TEST_CASE("a checkpoint of ours gives the network of the same name, without being told") {
  const ScratchFolder folder;
  Session source = session_of("model: {class: MLP, inputs: 64}\n", "[]");
  CHECK(source.init_weights() == "");
  const State weights = numbered(weights_of(source));
  State tensors = with_prefix("model.", weights);
  tensors["optimizer.layers.0.weight.momentum_buffer"] = at::zeros({1});
  tensors["random.cpu"] = at::zeros({1}, at::kByte);
  Checkpoint checkpoint;
  checkpoint.tensors = tensors;
  const std::string path = save_checkpoint(folder.path(), checkpoint);

  Session session = session_of("model: {class: MLP, inputs: 64}\n", path);
  const at::Tensor parameter = session.context().networks.tensors("model").begin()->second;
  CHECK(session.init_weights() == "model: 4 of 4 tensors from " + path);
  CHECK(differences(weights_of(session), weights) == "");
  // The optimizer keeps the parameters that it was made with.
  CHECK(parameter.is_same(session.context().networks.tensors("model").begin()->second));
  CHECK(parameter.requires_grad());
}

TEST_CASE("several networks take weights from several files") {
  const ScratchFolder folder;
  Session session = session_of(kTwo, "[{path: " + folder.path("a") + ", network: model}, {path: " +
                                         folder.path("b") + ", network: other, prefix: g.}]");
  const State model = numbered(weights_of(session));
  const State other = numbered(weights_of(session, "other"));
  save_safetensors(folder / "a", model);
  save_safetensors(folder / "b", with_prefix("g.", other));
  CHECK(session.init_weights() == "model: 4 of 4 tensors from " + folder.path("a") +
                                      "\nother: 4 of 4 tensors from " + folder.path("b"));
  CHECK(differences(weights_of(session), model) == "");
  CHECK(differences(weights_of(session, "other"), other) == "");
}

TEST_CASE("a strict file that does not fit is refused with all that differs, and changes nothing") {
  const ScratchFolder folder;
  const std::string path = folder / "w";
  Session session = session_of(kLeNet, "{path: " + path + "}");
  const State before = weights_of(session);
  State weights = numbered(before);
  weights["conv1.weight"] = at::zeros({6, 3, 5, 5});
  weights.erase("fc3.weight");
  weights.erase("fc3.bias");
  weights["head.weight"] = at::zeros({1});
  save_safetensors(path, weights);
  const std::string rest =
      "\n  missing from the file (2): fc3.bias, fc3.weight"
      "\n  left over in the file (1): head.weight"
      "\n  of another shape or type (1):"
      "\n    conv1.weight: [6, 3, 5, 5] in the file, [6, 1, 5, 5] here";
  CHECK(message_of([&] { session.init_weights(); }) ==
        "test.yaml:2: init_from/path: " + path +
            ": 7 of the 10 tensors of the network \"model\" fit ({path: ..., strict: false} loads "
            "them), these do not:" +
            rest);
  CHECK(differences(weights_of(session), before) == "");

  Session lenient = session_of(kLeNet, "{path: " + path + ", strict: false}");
  CHECK(lenient.init_weights() == "model: 7 of 10 tensors from " + path + rest);
  const State after = weights_of(lenient);
  CHECK(differences(after, weights) == "conv1.weight fc3.bias fc3.weight head.weight ");
}

TEST_CASE("nothing that fits is an error, strict or not, and says which prefix would help") {
  const ScratchFolder folder;
  const std::string path = folder / "w";
  const std::string model = "model: {class: MLP, inputs: 64}\n";
  const State weights = weights_of(session_of(model, "[]"));
  save_safetensors(path, with_prefix("module.", weights));
  const std::string missing =
      "\n  missing from the file (4): layers.0.bias, layers.0.weight, layers.1.bias, "
      "layers.1.weight";
  CHECK(refused(model, "{path: " + path + ", prefix: '', strict: false}") ==
        "test.yaml:2: init_from/path: " + path +
            ": none of its 4 tensors fits the network \"model\", which has 4:" + missing +
            "\n  left over in the file (4): module.layers.0.bias, module.layers.0.weight, "
            "module.layers.1.bias, module.layers.1.weight"
            "\n  missing          left over, of the same shape"
            "\n  layers.0.bias    module.layers.0.bias"
            "\n  layers.0.weight  module.layers.0.weight"
            "\n  layers.1.bias    module.layers.1.bias"
            "\n  layers.1.weight  module.layers.1.weight"
            "\n  with the prefix \"module.\", 4 of their names fit; found \"\"");
  CHECK(refused(model, "{path: " + path + ", prefix: modle.}") ==
        "test.yaml:2: init_from/path: " + path +
            ": none of its 4 tensors fits the network \"model\", which has 4:" + missing +
            "\n  with the prefix \"module.\", 4 of their names fit; found \"modle.\"");
  save_safetensors(path, {});
  CHECK(refused(model, path) ==
        "test.yaml:2: init_from: " + path +
            ": none of its 0 tensors fits the network \"model\", which has 4:" + missing);
}

TEST_CASE("long lists are cut") {
  const ScratchFolder folder;
  const std::string path = folder / "w";
  State weights = weights_of(session_of(kLeNet, "[]"));
  for (int i = 0; i < 12; ++i) weights["x." + std::to_string(i)] = at::zeros({1});
  weights.erase("fc1.bias");
  save_safetensors(path, weights);
  CHECK(session_of(kLeNet, "{path: " + path + ", strict: false}").init_weights() ==
        "model: 9 of 10 tensors from " + path +
            "\n  missing from the file (1): fc1.bias"
            "\n  left over in the file (12): x.0, x.1, x.10, x.11, x.2, x.3, x.4, x.5, x.6, x.7 "
            "and 2 more");
}

TEST_CASE("a file that cannot be read is an error at its place in the config") {
  const ScratchFolder folder;
  CHECK(refused(kLeNet, folder / "none") ==
        "test.yaml:2: init_from: there is no file " + folder.path("none"));
  CHECK(refused(kLeNet, "[{path: " + folder.path("none") + "}]") ==
        "test.yaml:2: init_from/0/path: there is no file " + folder.path("none"));
  folder.write("bad", "PK");
  CHECK(refused(kLeNet, "{path: " + folder.path("bad") + "}") ==
        "test.yaml:2: init_from/path: " + folder.path("bad") +
            ": it has 2 bytes, too few for a safetensors file");
}

TEST_CASE("a mistake in the config is found before a file is opened") {
  const auto begin = [](const std::string& model, const std::string& init_from) {
    return message_of([&] { session_of(model, init_from); });
  };
  CHECK(begin(kLeNet, "3") ==
        "test.yaml:2: init_from: expected a file of weights, a map {path: weights.safetensors, "
        "strict: false}, or a list of such, found 3");
  CHECK(begin(kLeNet, "{strict: false}") ==
        "test.yaml:2: init_from/path: missing; give it in a config, or on the command line as "
        "--init_from/path VALUE");
  CHECK(begin(kLeNet, "{path: w, network: modle}") ==
        "test.yaml:2: init_from/network: there is no network \"modle\"; there are: model");
  CHECK(begin(kTwo, "{path: w}") ==
        "test.yaml:2: init_from: say for which network the weights are, as in {path: "
        "weights.safetensors, network: model}; there are: model, other");
  CHECK(begin(kLeNet, "{path: w, map: [a]}") ==
        "test.yaml:2: init_from/map: expected the beginnings of names and what they become, such "
        "as {\"old.\": \"new.\"}, found [a]");
  CHECK(begin(kLeNet, "{path: w, map: {a: 1}}") ==
        "test.yaml:2: init_from/map: expected what \"a\" becomes as a text, found 1");
  CHECK(begin(kLeNet, "{path: w, map: {a: b}, prefx: a}")
            .find("unknown key \"init_from/prefx\": did you mean \"init_from/prefix\"?") !=
        std::string::npos);
}

TEST_CASE("its path is relative to the config that holds it, and absolute in the saved one") {
  for (const std::string init : {"w", "{path: w}", "[w]", "[{path: w}]"}) {
    const Config config(parse_yaml("init_from: " + init, {"/data/configs/test.yaml", 0}));
    make_paths_absolute(config);
    const Value* value = config.peek("init_from");
    if (value->is_list()) value = value->find("0");
    if (value->is_map()) value = value->find("path");
    CHECK(value->as_text() == "/data/configs/w");
  }
  // Also without that, once it is read.
  const Config config(
      parse_yaml(std::string(kLeNet) + "init_from: w" + kRest, {"/data/configs/test.yaml", 0}));
  const Session session(config, true, false, false);
  CHECK(session.config_yaml().find("init_from: /data/configs/w\n") != std::string::npos);
}

/// Parameters and buffers of every type that must come with its bits.
class TestTypes : public Network {
 public:
  explicit TestTypes(const Config&) {
    register_parameter("bfloat16", at::zeros({3}, at::kBFloat16));
    register_parameter("float16", at::zeros({3}, at::kHalf));
    register_parameter("scalar", at::zeros({}));
    register_buffer("bool", at::zeros({2}, at::kBool));
    register_buffer("int64", at::zeros({2}, at::kLong));
    register_buffer("num_batches", at::zeros({}, at::kLong));
    layer_ = register_module("layer", torch::nn::Linear(64, 3));
  }
  at::Tensor forward(const at::Tensor& input) override { return layer_(input.flatten(1)); }

 private:
  torch::nn::Linear layer_{nullptr};
};

STEPOP_REGISTER_MODEL(TestTypes, {"For tests.", {}});

TEST_CASE("tensors of every type come from Python with the same bits") {
  const ScratchFolder folder;
  const std::string path = folder / "w";
  run_python(R"(
import sys, torch
from safetensors.torch import save_file
bits = torch.tensor([0x7fc1, -0x8000, 1], dtype=torch.int16)   # a NaN, -0.0, the least number
save_file({"bfloat16": bits.view(torch.bfloat16), "float16": bits.clone().view(torch.float16),
           "scalar": torch.tensor(0.1), "bool": torch.tensor([True, False]),
           "int64": torch.tensor([-2**63, 2**63 - 1]), "num_batches": torch.tensor(12345678901),
           "layer.weight": torch.ones(3, 64), "layer.bias": torch.ones(3)}, sys.argv[1])
)",
             {path});
  Session session = session_of("model: TestTypes\n", path);
  CHECK(session.init_weights() == "model: 8 of 8 tensors from " + path);
  CHECK(differences(weights_of(session), load_safetensors(path).tensors) == "");
  const State weights = weights_of(session);
  CHECK(weights.at("num_batches").item<int64_t>() == 12345678901);
  CHECK(weights.at("bfloat16").view(at::kShort)[0].item<int64_t>() == 0x7fc1);
  CHECK(weights.at("int64")[0].item<int64_t>() == std::numeric_limits<int64_t>::min());
}

}  // namespace networks_init_from_test
}  // namespace stepop
