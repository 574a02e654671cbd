// Whatever is in a file of torch.export, it is a network or refused with an Error that names it,
// within time and memory; and what it computes is a result or such an Error.
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/exported/safe_operations.h"
#include "runtime/core/base/error.h"
#include "runtime/train/networks/network.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/test_run.h"
#include "tests/zip_entries.h"

namespace stepop {
namespace exported_fuzz_test {

using Json = nlohmann::json;
using Entries = ZipEntries;

/// Every kind of argument and of state: lists of tensors, sizes that depend on the input, a
/// constant, buffers that change, a type and a device.
constexpr const char* kNet = R"(import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
        self.last = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("table", torch.arange(3.0), persistent=False)

    def forward(self, x):
        if self.training: self.calls.add_(1)
        x = self.first(x)
        a, b = x.chunk(2, 1)
        x = torch.cat([b, a], 1) + torch.ones(x.shape[-1], dtype=x.dtype, device=x.device) / x.shape[0]
        x = nn.functional.interpolate(x, scale_factor=0.5)[:, [3, 0, 1, 2]]
        return self.last(x.reshape(x.shape[0], 4, -1).mean(2)) + self.table
)";

/// The network as Python wrote it, made once.
const std::string& whole() {
  static const std::string bytes = [] {
    const ScratchFolder folder;
    run_python(
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from stepop.eval import export; "
        "export.main()",
        {STEPOP_SOURCE_DIR "/eval_out/python", folder.write("net.py", kNet) + ":Net", "--example",
         "x=2,1,8,8", "-o", folder.path("net.pt2")});
    return read_bytes(folder.path("net.pt2"));
  }();
  return bytes;
}

/// Every value in a document.
void collect(Json& json, std::vector<Json*>& values) {
  values.push_back(&json);
  if (!json.is_structured()) return;
  for (auto& child : json) collect(child, values);
}

class JsonMutator {
 public:
  explicit JsonMutator(ByteMutator& random) : random_(random) {}

  /// The document with one to three values changed, left out, moved or of another type.
  std::string mutate(const std::string& text) {
    Json json = Json::parse(text);
    for (uint64_t count = 1 + random_.below(3); count > 0; --count) change(json);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  Json& value_in(Json& document) {
    Json& json = document.contains("graph_module") ? part_of(document) : document;
    if (random_.below(2) == 0) {  // each as likely
      std::vector<Json*> values;
      collect(json, values);
      return *values[random_.below(values.size())];
    }
    Json* value = &json;  // those that have few beside them more likely
    while (value->is_structured() && !value->empty() && random_.below(8) > 0) {
      value = &*std::next(value->begin(), static_cast<int64_t>(random_.below(value->size())));
    }
    return *value;
  }

  /// Operations and signatures more often than what a graph has beside them.
  Json& part_of(Json& document) {
    auto& module = document["graph_module"];
    if (!module.is_object() || random_.below(4) == 0) return document;
    if (random_.below(3) == 0) return module["signature"];
    if (!module["graph"].is_object()) return document;
    Json& nodes = module["graph"]["nodes"];
    if (!nodes.is_array() || nodes.empty()) return document;
    Json& node = nodes[random_.below(nodes.size())];
    if (!node.is_object() || random_.below(8) == 0) return nodes;
    return random_.below(4) == 0 ? node : node["inputs"];
  }

  void change(Json& json) {
    static const Json others = Json::parse(R"([
        null, true, false, 0, 1, -1, 2, 3, 7, 63, 1099511627776, 4611686018427387904,
        9223372036854775807, -9223372036854775808, 18446744073709551615, 0.5, 1e300, "", "x", "NaN",
        "..", "first.", ".x", "x", "sym_size_int_1", "../../x", "torch.ops.aten.add.Tensor",
        "torch.ops.aten.lstm.input", "torch.ops.aten.nowhere.default", "_operator.floordiv",
        [], {}, [1], [[]], {"as_int": -1}, {"as_int": 1099511627776}, {"as_name": "x"},
        {"as_none": true}, {"as_tensor": {"name": "x"}}, {"as_tensors": [{"name": "x"}]},
        {"as_ints": [1, -1]}, {"as_float": 2.5}, {"as_scalar_type": 7}, {"as_scalar_type": 99},
        {"as_memory_format": 9}, {"as_string": "x"}, {"as_expr": {"expr_str": "x"}}])");
    Json& value = value_in(json);
    const Json other = value_in(json);
    switch (random_.below(4)) {
      case 0:
        value = other;
        break;
      case 1:
        if (!value.is_structured() || value.empty()) break;
        value.erase(std::next(value.begin(), static_cast<int64_t>(random_.below(value.size()))));
        break;
      case 2:
        if (value.is_array()) {
          value.push_back(other);
        } else if (value.is_object()) {
          value[others[random_.below(others.size())].dump()] = other;
        } else if (value.is_string()) {
          value = random_.mutate(value.get<std::string>() + " ");
        }
        break;
      default:
        value = others[random_.below(others.size())];
    }
  }

  ByteMutator& random_;
};

/// What became of a file.
enum class End { kRefused, kFailed, kComputed };

End use(const std::string& path) {
  const auto check_named = [&](const Error& error) {
    REQUIRE(std::string(error.what()).find(path) != std::string::npos);
  };
  std::shared_ptr<torch::nn::Module> net;
  try {
    net = models().build(test_config("model: {class: Exported, path: " + path + "}"), "model");
  } catch (const Error& error) {
    check_named(error);
    return End::kRefused;
  }
  auto* network = dynamic_cast<Network*>(net.get());
  if (network == nullptr) return End::kFailed;
  for (const bool training : {true, false}) {
    net->train(training);
    at::Tensor result;
    try {
      result = network->forward(at::ones({3, 1, 8, 8}));
    } catch (const Error& error) {
      check_named(error);
      return End::kFailed;
    }
    try {
      if (result.requires_grad()) result.sum().backward();
    } catch (const std::exception&) {  // LibTorch's, about operations that do not fit
      return End::kFailed;
    }
  }
  return End::kComputed;
}

void fuzz(const char* kind, const std::function<std::string(ByteMutator&)>& mutated) {
  const uint64_t seed = fuzz_seed();
  const uint64_t count = fuzz_count(1000);
  const ScratchFolder folder;
  const std::string path = folder.path("net.pt2");
  FuzzWatch watch(kind, seed);
  std::map<End, uint64_t> ends;
  for (uint64_t i = fuzz_first(); i < fuzz_first() + count; ++i) {
    CAPTURE(i);
    ByteMutator random(seed * 1'000'003 + i,
                       {"as_int", "as_name", "null", "-1", "[", "{", "\"", "1099511627776", "0"},
                       {"PK\1\2", "PK\5\6", "nodes", "signature", "sizes"});
    write_bytes(path, mutated(random));
    watch.run(i, [&] { ++ends[use(path)]; });
  }
  MESSAGE(fmt::format("{}: {} refused, {} failed, {} computed", kind, ends[End::kRefused],
                      ends[End::kFailed], ends[End::kComputed]));
  if (count > 500) CHECK(ends[End::kRefused] > count / 10);
  if (count > 500) CHECK(ends[End::kComputed] > count / 50);
}

TEST_CASE("an exported network that is packed anew is the same") {
  const ScratchFolder folder;
  write_bytes(folder.path("net.pt2"), zipped(entries_of(whole())));
  CHECK((use(folder.path("net.pt2")) == End::kComputed));
}

/// The error of the network when a document of its file is changed by a JSON Patch (RFC 6902).
std::string with_patches(const std::map<std::string, Json>& patches) {
  static const Entries entries = entries_of(whole());
  const ScratchFolder folder;
  const std::string path = folder.path("net.pt2");
  Entries changed = entries;
  for (const auto& [document, patch] : patches) {
    for (auto& [name, content] : changed) {
      if (name.ends_with(document)) content = Json::parse(content).patch(patch).dump();
    }
  }
  write_bytes(path, zipped(changed));
  std::string text = message_of([&] {
    const auto net =
        models().build(test_config("model: {class: Exported, path: " + path + "}"), "model");
    dynamic_cast<Network&>(*net).forward(at::ones({3, 1, 8, 8}));
  });
  const size_t place = text.find(path);
  return place == std::string::npos ? text : text.substr(place + path.size());
}

Json replaced(const std::string& pointer, const Json& value) {
  return Json{{{"op", "replace"}, {"path", pointer}, {"value", value}}};
}

TEST_CASE("a tensor of an exported network that cannot be is named") {
  const auto refused = [](const std::string& place, const Json& value) {
    const std::string text = with_patches(
        {{"model_weights_config.json", replaced("/config/first.0.weight" + place, value)}});
    const std::string beginning = ": the tensor first.0.weight ";
    return text.starts_with(beginning) ? text.substr(beginning.size()) : text;
  };
  CHECK(refused("/path_name", "weight_0") == "no error");
  const std::string outside = "lies outside of its bytes";
  for (const int64_t value : {int64_t{-1}, int64_t{5}, int64_t{1} << 62}) {
    CAPTURE(value);
    CHECK(refused("/tensor_meta/sizes/0", {{"as_int", value}}) == outside);
    CHECK(refused("/tensor_meta/strides/0", {{"as_int", value > 0 ? value + 5 : -1}}) == outside);
    CHECK(refused("/tensor_meta/storage_offset", {{"as_int", value}}) == outside);
  }
  CHECK(refused("/tensor_meta/sizes", Json::array()) == outside);
  CHECK(refused("/tensor_meta/sizes/0", {{"as_expr", "s0"}}) ==
        "has a size that depends on an input");
  CHECK(refused("/tensor_meta/dtype", 99) == "has the unknown type 99");
  CHECK(refused("/tensor_meta/layout", 1) == "is not dense");
  CHECK(refused("/tensor_meta", nullptr) == "is no tensor");
  CHECK(refused("/use_pickle", true) == "is of a kind that torch.export writes as a pickle");
  CHECK(refused("/path_name", "x").ends_with(": data/weights/x is missing in it"));
  CHECK(
      refused("/path_name", 1).starts_with(": is damaged, or of another version of torch.export"));
}

TEST_CASE("names of tensors that a module cannot have are refused") {
  for (const char* name : {"", ".", "first.", ".x"}) {
    CAPTURE(std::string(name));
    const std::string to = "/config/" + std::string(name);
    const Json move{{{"op", "move"}, {"from", "/config/first.0.weight"}, {"path", to}}};
    const Json in_graph =
        replaced("/graph_module/signature/input_specs/0/parameter/parameter_name", name);
    CHECK(with_patches({{"model_weights_config.json", move}, {"models/model.json", in_graph}})
              .starts_with(": is damaged, or of another version of torch.export: "));
  }
}

TEST_CASE("an exported network whose graphs do not fit each other is refused") {
  const Json nothing = replaced("/graph_module/signature/output_specs", Json::array());
  CHECK(with_patches({{"models/eval.json", nothing}}) ==
        ": its two graphs have other numbers of results");
  CHECK(with_patches({{"models/model.json", nothing}}) == ": the network returns no tensor");
}

TEST_CASE("an operation of an exported network that cannot be is refused") {
  const auto refused = [](const std::string& place, const Json& value) {
    return with_patches(
        {{"models/model.json", replaced("/graph_module/graph/nodes/1" + place, value)}});
  };
  const std::string argument = "/inputs/0/arg";
  CHECK(refused("/target", "torch.ops.aten.nowhere.default")
            .ends_with(": there is no such operation here"));
  CHECK(refused("/target", "torch.ops.aten.from_file.default")
            .ends_with(": it opens a file, which a network must not"));
  CHECK(refused(argument, {{"as_tensor", {{"name", "nowhere"}}}})
            .ends_with(": the value \"nowhere\" is not there"));
  CHECK(refused(argument, nullptr).ends_with(": an argument cannot be read"));
  CHECK(
      refused(argument, {{"as_memory_format", 9}}).ends_with(": the memory format 9 is not known"));
  CHECK(refused(argument, {{"as_string", "x"}}).ends_with(": Expected Tensor but got String"));
  CHECK(refused(argument, {{"as_none", true}}).ends_with(": Expected Tensor but got None"));
}

TEST_CASE("an exported network calls no operation that leaves its memory or opens files") {
  const auto refused = [](const std::string& name) {
    const std::string text =
        with_patches({{"models/model.json", replaced("/graph_module/graph/nodes/1/target",
                                                     "torch.ops." + name + ".default")}});
    return text.ends_with(", which a network must not");
  };
  for (const char* name : {"inductor._reinterpret_tensor", "inductor._alloc_from_pool",
                           "aten._reshape_alias", "aten.set_", "aten._nested_view_from_buffer",
                           "aten._cholesky_solve_helper", "aten.max_pool2d_with_indices_backward",
                           "aten.segment_reduce", "aten._sparse_coo_tensor_unsafe",
                           "aten.slow_conv_transpose2d", "aten._fused_adam_", "quantized.linear"}) {
    CAPTURE(std::string(name));
    CHECK(refused(name));
  }
  CHECK_FALSE(refused("aten.relu"));
}

TEST_CASE("every operation of LibTorch beside aten is refused in an exported network") {
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto operation = c10::Dispatcher::singleton().findSchema(name);
    if (!operation || name.name.starts_with("aten::")) continue;
    CAPTURE(name.name);
    CHECK(why_refused(*operation) != "");
  }
}

void check_arguments(const char* name, const char* overload, torch::jit::Stack arguments) {
  const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  CHECK(why_refused(operation) == "");
  const ArgumentCheck check = find_argument_check(operation);
  REQUIRE((check != nullptr));
  check(arguments);
}

TEST_CASE("sizes with which an operation would leave its memory are refused") {
  const auto ones = [](at::IntArrayRef sizes) { return at::ones(sizes); };
  const auto norm = [&](int64_t channels) {
    check_arguments("aten::_native_batch_norm_legit_no_training", "",
                    {ones({2, 4, 3}), c10::IValue(), c10::IValue(), ones({channels}), ones({4})});
  };
  CHECK(message_of([&] { norm(4); }) == "no error");
  CHECK(message_of([&] { norm(1); }) == "a number for each channel is [1], expected [4]");
  const auto weight = [&](int64_t rows) {
    check_arguments("aten::_weight_norm", "", {ones({8, 3}), ones({rows, 1}), int64_t{0}});
  };
  CHECK(message_of([&] { weight(8); }) == "no error");
  CHECK(message_of([&] { weight(1); }) == "the length of the weights is [1, 1], expected [8]");
  const auto attention = [&](int64_t values) {
    check_arguments("aten::scaled_dot_product_attention", "",
                    {ones({1, 2, 9, 4}), ones({1, 2, 9, 4}), ones({1, 2, values, 4})});
  };
  CHECK(message_of([&] { attention(9); }) == "no error");
  CHECK(message_of([&] { attention(2); }) == "it has 9 keys and 2 values");
  const auto lstm = [&](int64_t rows) {
    const std::vector<at::Tensor> state{ones({1, 2, 5}), ones({1, 2, 5})};
    const std::vector<at::Tensor> weights{ones({20, 3}), ones({rows, 5})};
    check_arguments("aten::lstm", "input",
                    {ones({4, 2, 3}), state, weights, false, int64_t{1}, 0.0, false, false, false});
  };
  CHECK(message_of([&] { lstm(20); }) == "no error");
  CHECK(message_of([&] { lstm(1); }) == "a weight is [1, 5], expected [20, 5]");
}

TEST_CASE("numbers of more than 64 bits in an exported network are refused") {
  const std::string text = with_patches(
      {{"model_weights_config.json",
        replaced("/config/first.0.weight/tensor_meta/sizes/0", {{"as_int", uint64_t{1} << 63}})}});
  CHECK(text.ends_with("expected a whole number, found 9223372036854775808"));
}

TEST_CASE("mutated bytes of exported networks are read or refused") {
  const std::string small = zipped(entries_of(whole()));
  fuzz("exported, bytes",
       [&](ByteMutator& random) { return random.mutate(random.below(2) == 0 ? whole() : small); });
}

TEST_CASE("mutated graphs and lists of tensors of exported networks are read or refused") {
  const Entries entries = entries_of(whole());
  std::vector<std::string> documents, names;
  for (const auto& [name, content] : entries) {
    names.push_back(name);
    if (name.ends_with(".json")) documents.push_back(name);
  }
  CHECK(documents.size() == 6);
  fuzz("exported, values", [&](ByteMutator& random) {
    Entries changed = entries;
    std::string& content = changed[documents[random.below(documents.size())]];
    content = random.below(5) == 0 ? random.mutate(content) : JsonMutator(random).mutate(content);
    const std::string& name = names[random.below(names.size())];
    if (random.below(20) == 0) changed.erase(name);
    if (random.below(20) == 0) changed[name] = random.mutate(changed[name]);
    return zipped(changed);
  });
}

}  // namespace exported_fuzz_test
}  // namespace stepop
