#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/exported/compiled_code.h"

namespace stepop {

/// The forward and backward passes of a network as native code, which PyTorch's inductor compiled
/// ahead of time. They read the parameters of the network and write its buffers, and draw from
/// LibTorch's generators; gradients go through autograd as ever.
class CompiledPasses {
 public:
  /// Loads the code, which then is part of this process. `tensor_of` finds the tensors of the
  /// network, which outlive the passes; throws Error for a name that it does not have.
  CompiledPasses(const CompiledContent& content, const std::string& path, size_t inputs,
                 size_t outputs, bool has_batch_norm,
                 const std::function<PassTensor(const std::string&)>& tensor_of);
  ~CompiledPasses();
  CompiledPasses(const CompiledPasses&) = delete;
  CompiledPasses& operator=(const CompiledPasses&) = delete;

  /// Whether the compiled passes have the gradients that this call wants, if any: those of inputs
  /// and of an evaluation are the graph's alone, and so is the tracing of an export.
  bool can_run(const std::vector<at::Tensor>& inputs, bool training) const;

  /// The results of the network. Throws Error for settings of the run under which the passes would
  /// compute something else than the graph.
  std::vector<at::Tensor> run(const torch::nn::Module& network,
                              const std::vector<at::Tensor>& inputs, bool training);

 private:
  void check_device(c10::Device device) const;
  void check_settings(const torch::nn::Module& network, const std::vector<at::Tensor>& inputs,
                      bool training);

  std::string path_, precision_;
  c10::DeviceType device_;
  bool has_batch_norm_;
  std::shared_ptr<CompiledCode> training_, evaluation_;
  std::vector<const torch::nn::Module*> modules_;  ///< All of the network.
};

}  // namespace stepop
