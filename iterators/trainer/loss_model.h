#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/batch.h"

namespace stepop {

/// What a LossModel makes of a batch: `return loss;`, or `return {loss, {{"kl", kl}}};`.
struct LossOutput {
  LossOutput(at::Tensor the_loss, Scalars the_metrics = {})
      : loss(std::move(the_loss)), metrics(std::move(the_metrics)) {}

  /// [B], one number for each example, or their mean []. The mean is what is trained; an evaluation
  /// writes the numbers of the examples.
  at::Tensor loss;
  /// Logged beside the loss, and written by evaluations: [B], [] or plain numbers.
  Scalars metrics;
};

/// A network that knows its loss, for `iterator: Trainer`. `forward` does all that there is between
/// a batch and its loss: noise, timesteps, targets. Registered by STEPOP_REGISTER_MODEL.
class LossModel : public torch::nn::Module {
 public:
  /// Takes each batch as it is.
  LossModel() = default;
  /// Takes these tensors and texts of a batch, by name. A batch that lacks one of them, or has
  /// further tensors, is an error at the start; `inputs` in the config gives keys of a batch other
  /// names.
  explicit LossModel(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}

  /// Called in training mode with gradients, and in evaluation mode without.
  virtual LossOutput forward(const Batch& batch) = 0;

  /// For samplers: new examples, `conditions.size()` of them: [N, C, H, W] in [-1, 1] for images,
  /// [N, T, C, H, W] for videos. `conditions` has what the sampler gives: classes, prompts.
  /// In evaluation mode, without gradients. By default throws Error.
  virtual at::Tensor sample(const Batch& conditions);

  /// For samplers: what the model makes of the examples of a batch, in their shape. In evaluation
  /// mode, without gradients. By default throws Error.
  virtual at::Tensor reconstruct(const Batch& batch);

  /// The names that it takes; empty: it takes each batch as it is.
  const std::vector<std::string>& inputs() const { return inputs_; }

  /// Training steps that are complete, for weights of losses that depend on it.
  int64_t global_step() const { return global_step_; }
  /// The trainer says so before each `forward`.
  void set_global_step(int64_t step) { global_step_ = step; }

 private:
  std::vector<std::string> inputs_;
  int64_t global_step_ = 0;
};

/// Whether a parameter, `decoder.mid.weight`, is one of a sub-module: `decoder`, `decoder.mid`.
bool is_parameter_of(const std::string& parameter, const std::string& submodule);

/// A LossModel of two parts that compete, for `iterator: AdversarialTrainer`: the main part, such
/// as a generator, and the discriminator. The trainer calls `focus_main` and `focus_disc` when a
/// phase begins; `forward` returns the loss of the part in focus.
class AdversarialModel : public LossModel {
 public:
  using LossModel::LossModel;

  /// Sets `requires_grad` of all parameters: what is trained from here on is the main part. By
  /// default does nothing: `focus` in the config then names the sub-modules.
  virtual void focus_main() {}
  /// The same for the discriminator.
  virtual void focus_disc() {}

  /// Which of them was called last. Evaluations see the main part in focus.
  bool has_main_focus() const { return has_main_focus_; }
  /// The trainer says so before it calls one of them.
  void set_main_focus(bool is_main) { has_main_focus_ = is_main; }

  /// Only the parameters of these sub-modules, `encoder` or `encoder.mid`, require a gradient from
  /// here on; others lose the one that they have. Throws Error for a name without parameters.
  void train_only(const std::vector<std::string>& submodules);

 private:
  bool has_main_focus_ = true;
};

}  // namespace stepop
