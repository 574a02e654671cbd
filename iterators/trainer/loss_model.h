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
#include "runtime/train/optim/schedule.h"

namespace stepop {

/// A LossModel's output for a batch: `return loss;`, or `return {loss, {{"kl", kl}}};`.
struct LossOutput {
  LossOutput(at::Tensor the_loss, Scalars the_metrics = {})
      : loss(the_loss), metrics(std::move(the_metrics)), weighted(std::move(the_loss)) {}
  /// A loss over labels, tokens or pixels of which some do not count, such as
  /// `cross_entropy_of_examples(logits, targets)`.
  LossOutput(WeightedMean the_loss, Scalars the_metrics = {})
      : loss(the_loss.value()), metrics(std::move(the_metrics)), weighted(std::move(the_loss)) {}

  /// [B], one number for each example, or their mean []. Training uses the mean; an evaluation
  /// writes the numbers of the examples.
  at::Tensor loss;
  /// Values that are logged with the loss, and written by evaluations: [B], [] or plain numbers.
  Scalars metrics;
  /// `loss` with its weight, if it has one.
  WeightedMean weighted;
};

/// A network that computes its own loss, for `iterator: Trainer`. `forward` does everything between
/// a batch and its loss: noise, timesteps, targets. Registered by STEPOP_REGISTER_MODEL.
class LossModel : public torch::nn::Module {
 public:
  /// The model takes whole batches.
  LossModel() = default;
  /// The model takes these tensors and texts of a batch, by name. A batch that lacks an input, or
  /// has further tensors, is an error at the start; `inputs` in the config renames keys of a batch.
  explicit LossModel(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}

  /// Called in training mode with gradients, and in evaluation mode without.
  virtual LossOutput forward(const Batch& batch) = 0;

  /// For samplers: makes `conditions.size()` new examples: [N, C, H, W] in [-1, 1] for images,
  /// [N, T, C, H, W] for videos. `conditions` comes from the sampler: classes, prompts. Called in
  /// evaluation mode, without gradients. By default throws Error.
  virtual at::Tensor sample(const Batch& conditions);

  /// For samplers: reconstructs the examples of a batch, in the same shape. Called in evaluation
  /// mode, without gradients. By default throws Error.
  virtual at::Tensor reconstruct(const Batch& batch);

  /// The names of the inputs; empty: the model takes whole batches.
  const std::vector<std::string>& inputs() const { return inputs_; }

  /// The number of complete training steps, for weights of losses that depend on it.
  int64_t global_step() const {
    StepReads::note("global_step()");
    return global_step_;
  }
  /// The trainer calls this before each `forward`.
  void set_global_step(int64_t step) { global_step_ = step; }

 private:
  std::vector<std::string> inputs_;
  int64_t global_step_ = 0;
};

/// Whether a parameter, `decoder.mid.weight`, belongs to a sub-module: `decoder`, `decoder.mid`.
bool is_parameter_of(const std::string& parameter, const std::string& submodule);

/// A LossModel of two competing parts, for `iterator: AdversarialTrainer`: the main part, such as a
/// generator, and the discriminator. The trainer calls `focus_main` and `focus_disc` when a phase
/// begins; `forward` returns the loss of the part in focus.
class AdversarialModel : public LossModel {
 public:
  using LossModel::LossModel;

  /// Sets `requires_grad` of all parameters so that only the main part is trained. By default does
  /// nothing: `focus` in the config then names the sub-modules.
  virtual void focus_main() {}
  /// The same for the discriminator.
  virtual void focus_disc() {}

  /// Whether `focus_main` was called last; evaluations have the main part in focus.
  bool has_main_focus() const { return has_main_focus_; }
  /// The trainer calls this before `focus_main` or `focus_disc`.
  void set_main_focus(bool is_main) { has_main_focus_ = is_main; }

  /// Trains only these sub-modules, `encoder` or `encoder.mid`: sets `requires_grad` of all
  /// parameters, and drops gradients of the others. Throws Error for a name without parameters.
  void train_only(const std::vector<std::string>& submodules);

 private:
  bool has_main_focus_ = true;
};

}  // namespace stepop
