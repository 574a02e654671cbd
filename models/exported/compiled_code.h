#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/exported/compiled_content.h"

namespace torch::inductor {
class AOTIModelContainerRunner;
}

namespace stepop {

/// A tensor that the passes read or write.
struct PassTensor {
  at::Tensor tensor;
  bool is_state = true;  ///< Of the network, which moves it between devices; else a constant.
};

/// The native code of one mode, the backward pass in a training, with the tensors of the network.
class CompiledCode {
 public:
  /// Loads the code. `device` is as of CompiledModes, `tensor_of` finds the network's tensors.
  CompiledCode(std::string path, CompiledMode description, const std::string& device,
               const CompiledContent& content,
               const std::function<PassTensor(const std::string&)>& tensor_of);
  ~CompiledCode();
  CompiledCode(const CompiledCode&) = delete;
  CompiledCode& operator=(const CompiledCode&) = delete;

  const std::string& path() const { return path_; }

  /// Whether a tensor of the network does.
  bool wants_gradients() const;

  /// What the pass takes, as it was compiled for. All inputs are on one device.
  std::vector<at::Tensor> taken(const std::vector<at::Tensor>& inputs);

  /// Throws Error for a parameter that wants a gradient and has none here.
  void check_frozen() const;

  /// What the forward pass returns; the backward pass takes `saved`. Tensors of the network have
  /// their new values.
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& all,
                                  std::vector<at::Tensor>& saved);

  /// The results of the network in their order.
  std::vector<at::Tensor> outputs(const std::vector<at::Tensor>& returned) const;

  /// The gradients of all sources, undefined where there are none. `zeros_of` makes the gradient of
  /// a result that has none.
  std::vector<at::Tensor> backward(const std::vector<at::Tensor>& saved,
                                   const std::vector<at::Tensor>& of_outputs,
                                   const std::function<at::Tensor(size_t)>& zeros_of);

  /// Whether the backward pass takes the gradient of this result.
  bool has_tangent(size_t output) const;

 private:
  bool is_written(const at::Tensor& tensor) const;

  /// The network moves its own tensors, and not the constants of a graph.
  void bring(size_t i, c10::Device device);

  /// Whether the memory is that of a result of the network, which its user may change, without
  /// being that result, whose changes autograd sees.
  bool is_under_result(const at::Tensor& tensor, const std::vector<at::Tensor>& returned) const;

  std::string path_;
  CompiledMode description_;
  std::unique_ptr<torch::inductor::AOTIModelContainerRunner> forward_, backward_;
  std::vector<PassTensor> tensors_;    ///< For each source the network's, or undefined.
  std::vector<at::ScalarType> types_;  ///< For each source.
  std::vector<at::Tensor> written_;    ///< For each result the tensor that takes it.
  std::vector<size_t> frozen_;         ///< Sources that had no gradient.
};

}  // namespace stepop
