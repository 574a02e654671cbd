#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iterators/diffusion/gaussian_diffusion.h"
#include "iterators/extensible/ports.h"
#include "iterators/extensible/state.h"
#include "runtime/train/networks/network.h"

namespace stepop::extensible {

/// The network of a diffusion, `generator: unet`, and what it gets beside x and the timesteps, by
/// the names of its inputs: `model_input_keys: {low_res: lq}`.
class Denoiser {
 public:
  /// Throws UsageError for a network without such inputs.
  Denoiser(const Config& params, Ports& ports);

  /// The network with the values that its further inputs have now. `rows`: the first so many
  /// examples of each; 0: all. What it gives beside its first output goes to `further`, when that
  /// is not null and as long as the function is called.
  diffusion::GaussianDiffusion::Model model(const StepState& state, int64_t rows,
                                            std::vector<at::Tensor>* further = nullptr) const;

  /// The key of an input; none when it has none.
  Slot input(std::string_view name) const;
  /// The keys of all inputs that have one.
  std::vector<Slot> inputs() const;
  torch::nn::Module& network() const { return *network_; }

 private:
  std::shared_ptr<MultiNetwork> network_;
  std::vector<std::string> names_;
  std::vector<Slot> keys_;  ///< By the network's inputs from the third on.
};

}  // namespace stepop::extensible
