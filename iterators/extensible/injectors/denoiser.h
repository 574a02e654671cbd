#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iterators/diffusion/gaussian_diffusion.h"
#include "iterators/extensible/step/ports.h"
#include "iterators/extensible/step/state.h"
#include "runtime/core/components/parameters.h"
#include "runtime/train/networks/network.h"

namespace stepop::extensible {

/// The network of a diffusion, `generator: unet`, and its inputs beyond x and the timesteps, by
/// name: `model_input_keys: {low_res: lq}`.
class Denoiser {
 public:
  struct Params {
    Port network;
    std::vector<std::pair<std::string, Port>> inputs;  ///< Given ones, by their names.
    diffusion::DiffusionOptions options;

    /// `about_options`: what follows the meaning of the diffusion's options.
    void declare(Parameters& p, std::string_view about_network,
                 std::string_view about_options = "");
  };

  /// Throws UsageError for a network without such inputs.
  Denoiser(const Params& params, Ports& ports);

  /// The network with the current values of its further inputs. `rows`: the number of examples to
  /// take from each; 0: all. The outputs after the first go to `further` unless it is null;
  /// `further` must outlive the function.
  diffusion::GaussianDiffusion::Model model(const StepState& state, int64_t rows,
                                            std::vector<at::Tensor>* further = nullptr) const;

  /// The key of an input; empty if it has none.
  Slot input(std::string_view name) const;
  /// The keys of all inputs that have a key.
  std::vector<Slot> inputs() const;
  torch::nn::Module& network() const { return *network_; }

 private:
  std::shared_ptr<MultiNetwork> network_;
  std::vector<std::string> names_;
  std::vector<Slot> keys_;  ///< For the network's inputs from the third on.
};

}  // namespace stepop::extensible
