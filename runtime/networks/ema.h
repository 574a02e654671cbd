#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/formats/state.h"
#include "runtime/optim/schedule.h"

namespace torch::nn {
class Module;
}

namespace stepop {

/// Exponential moving averages of the parameters of networks, as torch.optim.swa_utils keeps them:
///
///   average += (1 - decay) * (parameter - average)
///
/// after each training step. Every floating-point parameter is averaged, in float32 when its own
/// type has fewer bits. Buffers, such as running means and counts, are not averaged: the network's
/// own are used.
///
/// Config: `ema: {decay: 0.999, warmup: false, networks: [model]}`. `decay` may be a schedule.
/// With `warmup` it is at most (1 + n) / (10 + n) after n complete steps, as in TensorFlow, so that
/// the first weights are forgotten soon. By default all networks that an update trains are
/// averaged.
class Ema {
 public:
  /// `config` is the part `ema`. With `must_be_restored`, a checkpoint without averages is refused.
  /// Throws UsageError for a decay that is not in [0, 1).
  Ema(const Config& config, bool must_be_restored);

  /// Averages this network as well.
  void add(const std::string& name, std::shared_ptr<torch::nn::Module> network);

  /// Begins with the weights as they are, where no averages were restored.
  void start();

  /// The step after `global_step` complete ones is done. After `start` only.
  void update(int64_t global_step);

  /// The tensors of a network by name, with the averages for its parameters; empty before `start`.
  /// They share memory with this and the network.
  State state(const std::string& name) const;

  /// Restores the averages. After an empty state, of a checkpoint that was saved without `ema`,
  /// `start` begins with the weights as they are. Throws Error, and changes nothing, for a state
  /// that does not fit.
  void load_state(const std::string& name, const State& state);

 private:
  friend class EmaGuard;

  struct Averaged {
    std::string name;
    std::shared_ptr<torch::nn::Module> network;
    std::vector<std::pair<std::string, size_t>> parameters;  ///< Name -> position in the lists.
  };

  const Averaged& averaged(const std::string& name) const;

  Scheduled decay_;
  bool warmup_;
  bool must_be_restored_;
  std::vector<Averaged> networks_;
  std::vector<at::Tensor> parameters_;  ///< Each tensor once, also when it has several names.
  std::vector<at::Tensor> averages_;    ///< Undefined before they are restored or started.
};

/// Puts the averages into the networks while it lives: their parameters then use the averages'
/// memory, and nothing is copied unless the types differ. Versions are bumped when it begins and
/// ends, so that backward through a graph over other weights throws. A view of a parameter that was
/// made before keeps the parameter's own weights.
class EmaGuard {
 public:
  /// Does nothing when `ema` is null.
  explicit EmaGuard(const Ema* ema);
  ~EmaGuard();
  EmaGuard(const EmaGuard&) = delete;
  EmaGuard& operator=(const EmaGuard&) = delete;

 private:
  const Ema* ema_;
  std::vector<at::Tensor> weights_;  ///< The parameters' own memory.
};

}  // namespace stepop
