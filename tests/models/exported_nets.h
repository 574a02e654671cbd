// Networks of exported_nets.py, and what PyTorch computes with them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/network_layers.h"
#include "tests/models/module_training.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/test_run.h"

namespace stepop {

/// Runs a script of this folder that writes networks into `folder`.
inline void write_nets(const std::string& script, const ScratchFolder& folder) {
  run_python(
      "import runpy, sys; sys.argv = sys.argv[3:]; runpy.run_path(sys.argv[0], "
      "run_name='__main__')",
      {"-", "-", STEPOP_SOURCE_DIR "/tests/models/" + script, folder.path(),
       STEPOP_SOURCE_DIR "/eval_out/python"});
}

/// What exported_nets.py writes, once for all tests of a file.
inline const ScratchFolder& exported_nets() {
  static const struct Nets : ScratchFolder {
    Nets() { write_nets("exported_nets.py", *this); }
  } folder;
  return folder;
}

/// `path` is without `.pt2`; `more` are further parameters, `, compiled: true`.
inline std::shared_ptr<torch::nn::Module> exported(const std::string& path,
                                                   const std::string& more = "") {
  return models().build(test_config("model: {class: Exported, path: " + path + ".pt2" + more + "}"),
                        "model");
}

inline std::vector<at::Tensor> run_exported(torch::nn::Module& module,
                                            const std::vector<at::Tensor>& inputs) {
  if (auto* one = dynamic_cast<Network*>(&module)) return {one->forward(inputs.at(0))};
  return dynamic_cast<MultiNetwork&>(module).forward_all(inputs);
}

inline std::vector<at::Tensor> numbered(const State& state, const std::string& prefix) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; state.contains(prefix + std::to_string(i)); ++i) {
    tensors.push_back(state.at(prefix + std::to_string(i)));
  }
  return tensors;
}

/// To `most` of the largest number, or of `least` where that is larger.
inline void check_close(const std::vector<at::Tensor>& ours, const std::vector<at::Tensor>& theirs,
                        double most = 1e-5, double least = 1e-3) {
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    REQUIRE(ours[i].sizes() == theirs[i].sizes());
    const double scale = std::max(theirs[i].abs().max().item<double>(), least);
    CHECK((ours[i] - theirs[i]).abs().max().item<double>() / scale < most);
  }
}

/// Compares a network with what PyTorch computed with it, in both modes. Gradients may differ by
/// `most` of their size, and by `noise` of the largest: some are rounding alone, as before a
/// normalization. Results and buffers may differ by `rounding`. With `layer` the network ends
/// there.
inline void check_network(const std::string& path, const std::string& more = "", double most = 1e-5,
                          double noise = 0, double rounding = 1e-5, const std::string& layer = "") {
  const std::string of_layer = layer.empty() ? "" : "." + layer;
  const State facts = load_safetensors(path + of_layer + ".safetensors").tensors;
  const auto net = exported(path, more);
  if (!layer.empty()) dynamic_cast<NetworkLayers&>(*net).end_at(layer);
  const auto inputs = numbered(facts, "in.");
  net->eval();
  {
    const at::NoGradGuard no_grad;
    check_close(run_exported(*net, inputs), numbered(facts, "eval."), rounding);
  }
  net->train();
  at::manual_seed(0);
  const auto results = run_exported(*net, inputs);
  check_close(results, numbered(facts, "train."), rounding);
  at::Tensor loss = results[0].square().sum();
  for (size_t i = 1; i < results.size(); ++i) loss = loss + results[i].square().sum();
  loss.backward();
  int64_t gradients = 0;
  double largest = 0;
  for (const auto& [name, tensor] : facts) {
    if (name.starts_with("grad.")) largest = std::max(largest, tensor.abs().max().item<double>());
  }
  for (const auto& parameter : net->named_parameters()) {
    CAPTURE(parameter.key());
    const at::Tensor gradient = parameter.value().grad();
    const auto theirs = facts.find("grad." + parameter.key());
    REQUIRE(gradient.defined() == (theirs != facts.end()));
    if (!gradient.defined()) continue;
    check_close({gradient}, {theirs->second}, most, std::max(1e-3, noise / most * largest));
    ++gradients;
  }
  CHECK(gradients > (layer.empty() ? 2 : 1));
  for (const auto& buffer : net->named_buffers()) {
    CAPTURE(buffer.key());
    check_close({buffer.value()}, {facts.at("buffer." + buffer.key())}, rounding);
  }
}

/// A training of `drops`, or of what else takes its inputs.
inline std::string training_of_exported(const std::string& model) {
  return module_training(model, "ckpt_freq: 3\n");
}

}  // namespace stepop
