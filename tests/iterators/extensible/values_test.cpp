// Every injector and every loss against DL-Art-School's own, whose values
// tests/data/extensible/make.py stored: the same config, the same inputs.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tanh.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/networks/network.h"
#include "tests/iterators/extensible/workbench.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace extensible_values_test {

using namespace extensible;
using nlohmann::json;

const std::string kData = STEPOP_SOURCE_DIR "/tests/data/";

const SafetensorsFile& stored() {
  static const SafetensorsFile file = load_safetensors(kData + "extensible/values.safetensors");
  return file;
}

/// The tensors whose names begin with `prefix`, without it.
State below(const std::string& prefix) {
  State found;
  for (const auto& [name, tensor] : stored().tensors) {
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = tensor;
  }
  return found;
}

std::vector<json> cases_of(const std::string& kind) {
  std::vector<json> found;
  for (const auto& each : json::parse(stored().metadata.at("cases"))) {
    if (each["kind"] == kind) found.push_back(each);
  }
  return found;
}

/// What is wrong with a value; empty when nothing is.
std::string difference(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes()) {
    return fmt::format("found {}, expected {}", describe_tensor(found), describe_tensor(expected));
  }
  const at::Tensor a = found.detach().to(at::kDouble);
  const at::Tensor b = expected.to(at::kDouble);
  if (at::allclose(a, b, /*rtol=*/1e-4, /*atol=*/1e-5, /*equal_nan=*/true)) return {};
  return fmt::format("they differ by {}", (a - b).abs().max().item<double>());
}

/// One case, in place.
class Case {
 public:
  Case(Workbench& bench, json description)
      : bench_(bench), description_(std::move(description)), name_(description_["name"]) {
    for (const char* network : {"a", "d"}) {
      auto& module = *bench.context().networks.get(network);
      load_tensors(network, tensors_of(module), below(fmt::format("network/{}/", network)));
      module.train();
      module.zero_grad();
    }
    bench.clear();
    for (const auto& [key, name] : description_["inputs"].items()) {
      at::Tensor input = stored().tensors.at(name).clone();
      if (stored().tensors.contains(name_ + "/gradient/" + key)) input.requires_grad_();
      bench.set(key, input);
      inputs[key] = input;
    }
    at::manual_seed(std::stoull(stored().metadata.at("seed")));
  }

  /// As text, with the places of files.
  std::string config() {
    json config = description_["config"];
    if (description_.contains("files")) {
      for (const std::string key : description_["files"]) {
        save_safetensors(folder_.path(key), below(name_ + "/file/"));
        config[key] = folder_.path(key);
      }
    }
    if (config.contains("vgg19")) {
      config["vgg19"] = kData + std::string(config["vgg19"]).substr(5);
    }
    return config.dump();
  }

  int64_t iteration() const { return description_["iteration"]; }
  bool is_training() const { return description_.value("training", true); }
  int choices() const { return description_["choices"]; }
  const std::string& name() const { return name_; }

  void check_outputs() {
    for (const auto& [key, expected] : below(name_ + "/out/")) {
      CAPTURE(key);
      const Item& item = bench_.item(key);
      if (const auto* number = std::get_if<double>(&item)) {
        CHECK(difference(at::scalar_tensor(*number, at::kDouble), expected) == "");
      } else {
        CHECK(difference(std::get<at::Tensor>(item), expected) == "");
      }
    }
  }

  void check_gradients() const {
    for (const auto& [key, expected] : below(name_ + "/gradient/")) {
      CAPTURE(key);
      REQUIRE(inputs.at(key).grad().defined());
      CHECK(difference(inputs.at(key).grad(), expected) == "");
    }
    for (const char* network : {"a", "d"}) {
      const State expected = below(fmt::format("{}/gradient_of/{}/", name_, network));
      for (const auto& item : bench_.context().networks.get(network)->named_parameters()) {
        CAPTURE(item.key());
        const auto found = expected.find(item.key());
        const at::Tensor& gradient = item.value().grad();
        REQUIRE(gradient.defined() == (found != expected.end()));
        if (gradient.defined()) CHECK(difference(gradient, found->second) == "");
      }
    }
  }

  State inputs;

 private:
  Workbench& bench_;
  json description_;
  std::string name_;
  ScratchFolder folder_;
};

TEST_CASE("injectors make what DL-Art-School's make of the same config") {
  Workbench bench;
  const auto cases = cases_of("injector");
  CHECK(cases.size() > 60);
  for (const auto& description : cases) {
    Case each(bench, description);
    CAPTURE(each.name());
    const std::string config = each.config();
    CAPTURE(config);
    bench.inject(config, each.iteration(), each.is_training());
    each.check_outputs();
  }
}

TEST_CASE("losses and their gradients are those of DL-Art-School") {
  Workbench bench;
  const auto cases = cases_of("loss");
  CHECK(cases.size() > 30);
  for (const auto& description : cases) {
    Case each(bench, description);
    if (each.choices() > 1) continue;
    CAPTURE(each.name());
    const std::string config = each.config();
    CAPTURE(config);
    const at::Tensor value = bench.loss_tensor(config, each.iteration());
    CHECK(difference(value.reshape({1}), below(each.name() + "/").at("loss")) == "");
    each.check_outputs();
    if (!value.requires_grad()) continue;
    value.backward();
    each.check_gradients();
  }
}

TEST_CASE("losses that choose one of several changes have the values of all of them") {
  Workbench bench;
  for (const auto& description : cases_of("loss")) {
    Case each(bench, description);
    if (each.choices() == 1) continue;
    CAPTURE(each.name());
    const at::Tensor expected = below(each.name() + "/").at("loss");
    const Config params = test_config(each.config());
    const auto loss = bench.loss(params);
    std::set<int64_t> seen;
    for (int i = 0; i < 100; ++i) {
      const at::Tensor distance = (bench.compute(*loss, 0) - expected).abs().detach();
      CHECK(distance.min().item<double>() < 1e-5);
      seen.insert(distance.argmin().item<int64_t>());
    }
    CHECK(static_cast<int>(seen.size()) == each.choices());
  }
}

TEST_CASE("path lengths are compared with a mean that moves after each of them") {
  Workbench bench;
  const auto cases = cases_of("path lengths");
  REQUIRE(cases.size() == 1);
  Case each(bench, cases.front());
  const Config params = test_config("here: " + each.config()).at("here");
  const auto loss = bench.loss(params);
  const at::Tensor expected = below(each.name() + "/").at("loss");
  const auto run = [&](bool is_training) {
    const at::Tensor styles = each.inputs.at("w").detach().clone().requires_grad_();
    bench.clear();
    bench.set("w", styles);
    bench.set(
        "gen",
        at::tanh(at::matmul(styles.flatten(1), each.inputs.at("matrix"))).reshape({2, 3, 4, 4}));
    return bench.compute(*loss, 0, is_training);
  };
  for (int64_t i = 0; i < 3; ++i) CHECK(difference(run(true), expected[i]) == "");
  const auto mean = [&] { return bench.context().tracker.save("here_mean").at("value").clone(); };
  CHECK(difference(mean(), below(each.name() + "/out/").at("mean")) == "");
  CHECK(run(true).requires_grad());
  const at::Tensor before = mean();
  run(false);
  CHECK(difference(mean(), before) == "");
  {
    const at::NoGradGuard no_grad;
    CHECK_FALSE(bench.compute(*loss, 0).defined());
  }
  bench.set("w", each.inputs.at("w").clone().requires_grad_());
  CHECK(message_of([&] { bench.compute(*loss, 0); }) ==
        "path lengths: the images do not depend on the styles");
  bench.set("w", each.inputs.at("w"));
  CHECK(message_of([&] {
          bench.compute(*loss, 0);
        }).starts_with("path lengths: the styles and the images have no graph"));
}

TEST_CASE("an option that a component does not have is found, in every one of them") {
  Workbench bench;
  for (const std::string kind : {"injector", "loss"}) {
    for (const auto& description : cases_of(kind)) {
      Case each(bench, description);
      CAPTURE(each.name());
      std::string config = each.config();
      config.insert(config.size() - 1, ", \"wrong_option\": 1");
      const std::string message = message_of([&] {
        const Config params = test_config(config);
        if (kind == "injector") {
          bench.injector(params);
        } else {
          bench.loss(params);
        }
        throw UsageError(params.unknown_keys());
      });
      CHECK(message.find("unknown key \"wrong_option\"") != std::string::npos);
    }
  }
}

TEST_CASE("every injector and every loss is compared, or has a test of its own") {
  std::set<std::string> compared;
  for (const std::string kind : {"injector", "loss", "path lengths"}) {
    for (const auto& each : cases_of(kind)) compared.insert(each["config"]["type"]);
  }
  // Their random numbers are Python's, or kornia's; the last two are ours alone.
  for (const char* name : {"stylegan2_noise", "random_crop", "random_audio_crop", "random_scale",
                           "mel_mask", "random_shift", "frame"}) {
    compared.insert(name);
  }
  for (const Catalogue* catalogue :
       {static_cast<const Catalogue*>(&injectors()), static_cast<const Catalogue*>(&losses())}) {
    for (const auto& each : catalogue->registrations()) {
      if (each.name.starts_with("test_") || each.name.starts_with("gaussian_diffusion")) continue;
      CAPTURE(each.name);
      CHECK(compared.contains(each.name));
    }
  }
}

}  // namespace extensible_values_test
}  // namespace stepop
