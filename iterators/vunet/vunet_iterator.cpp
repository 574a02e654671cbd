#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "iterators/losses/image_losses.h"
#include "iterators/losses/loss_manager.h"
#include "iterators/losses/perceptual.h"
#include "iterators/vunet/pictures.h"
#include "models/vunet/vunet.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

using vunet::Latents;
using Mode = VUNet::Mode;

/// The network's output for a batch.
struct Prediction {
  at::Tensor image;  ///< [B, 3, H, W]
  Latents q_means;
  Latents p_means;
};

struct Losses {
  OrderedMap<at::Tensor> instances;  ///< By name, [B] each; `total` is the last.
  OrderedMap<at::Tensor> batch;      ///< Their means.
};

/// The losses that the config's `losses` names: color_L1, color_L2, color_chroma, color_gradient
/// and perceptual of the image and the target; KL.
class Criterion {
 public:
  /// Throws UsageError like LossManager and PerceptualLoss.
  explicit Criterion(const Context& context)
      : losses_(context, "losses", specs(context), /*history=*/0) {}

  /// The losses with the weights of this step.
  Losses operator()(const Prediction& prediction, const at::Tensor& target) const {
    Losses made;
    for (const auto& name : losses_.names()) {
      const at::AutoGradMode gradients(at::GradMode::is_enabled() &&
                                       !losses_.is_only_watched(name));
      made.instances.set(
          name, name == "KL" ? losses::unit_gaussian_kl(prediction.p_means, prediction.q_means)
                             : losses_.values(name, {prediction.image, target}));
    }
    made.instances.set("total", losses_.weighted_sum(made.instances));
    for (const auto& [name, values] : made.instances) made.batch.set(name, values.mean());
    return made;
  }

 private:
  /// Add a new loss as a line here.
  static losses::LossSpecs specs(const Context& context) {
    using losses::of_two;
    losses::LossSpecs specs = {{"color_L1", {of_two(losses::l1)}},
                               {"color_L2", {of_two(losses::l2)}},
                               {"color_chroma", {of_two(losses::chroma)}},
                               {"color_gradient", {of_two(losses::image_gradient)}},
                               {"KL", {}},
                               {"perceptual", {}}};
    if (!context.config.has("losses/perceptual")) return specs;
    const auto perceptual = std::make_shared<losses::PerceptualLoss>(
        context.config.at("losses/perceptual"), context.device);
    specs.set("perceptual", {[perceptual](const std::vector<at::Tensor>& images) {
                return (*perceptual)(images.at(0), images.at(1));
              }});
    return specs;
  }

  losses::LossManager losses_;
};

/// Trains a VUNet to render the person of one image in the pose of another image, like
/// github.com/jhaux/VUNet.
///
/// Batches: `stickman` [B, pose_channels, W, W], `appearance` [B, img_channels, W, W] and `target`
/// [B, 3, W, W], the person of the appearance in the pose of the stickman; all in [-1, 1].
///
/// Config: `losses`, by `Criterion`.
class VUNetIterator : public Iterator {
 public:
  struct Params {
    std::string eval_mode = "train";
    int64_t transfer_appearances = 5;
    bool eval_inputs = true;

    void declare(Parameters& p) {
      p.describe({"losses/<name>",
                  "",
                  "color_L1, color_L2, color_chroma, color_gradient, KL, perceptual: {weight: 1}",
                  false,
                  {"any"}});
      p.add("eval_mode", eval_mode, "outside of training",
            one_of({"train", "appearance_transfer", "sample_appearance"}));
      p.add("transfer_appearances", transfer_appearances, "rows of a transfer matrix", at_least(1));
      p.add("eval_inputs", eval_inputs,
            "eval_op also writes appearance, pose and target of each example");
    }
  };

  VUNetIterator(const Params& params, const Context& context)
      : Iterator(context),
        model_(context.network<VUNet>()),
        update_(context.update()),
        criterion_(context),
        eval_mode_(VUNet::mode_of(params.eval_mode)),
        appearances_(params.transfer_appearances),
        writes_inputs_(params.eval_inputs) {}

  StepOps step_op(const Batch& batch) override {
    const VUNet::Inputs inputs{batch["stickman"], batch["appearance"]};
    const Prediction prediction =
        predict(inputs, model_->is_training() ? Mode::kTrain : eval_mode_);
    const Losses losses = criterion_(prediction, batch["target"]);
    const std::string split = get_split();

    StepOps ops;
    ops.train_op = [=, this] { update_.step(losses.batch.at("total")); };
    ops.log_op = [=, this] {
      Logs logs;
      for (const auto& [name, loss] : losses.batch) logs.scalars.set(name, loss);
      logs.images = {{"appearance", vunet::shown(inputs.appearance)},
                     {"pose", vunet::shown(inputs.pose)},
                     {"target", batch["target"]},
                     {"images_prediction", prediction.image},
                     {"images_prediction_sample", sample(inputs)}};
      return logs;
    };
    ops.eval_op = [=, this] {
      EvalOutputs made;
      if (writes_inputs_) {
        made.outputs = {
            {"appearance", inputs.appearance}, {"pose", inputs.pose}, {"target", batch["target"]}};
      }
      made.outputs.set("prediction", prediction.image);
      made.outputs.set("sample", sample(inputs));
      for (const auto& [name, values] : losses.instances) made.labels.set(name, values);
      return made;
    };
    ops.log_ops["transfer_op"] = [=, this] {
      return Logs{.images = {{"transfer", matrix(split)}}};
    };
    ops.eval_ops["transfer_op"] = [=, this] { return transfer(inputs, split); };
    return ops;
  }

 private:
  Prediction predict(const VUNet::Inputs& inputs, Mode mode) const {
    const at::Tensor image = model_->forward(inputs, mode);
    const auto& saved = model_->saved_tensors();
    return {image, saved.q_means, saved.p_means};
  }

  /// Images of the poses with appearances sampled from the prior, [B, 3, W, W].
  at::Tensor sample(const VUNet::Inputs& inputs) const {
    return model_->forward(inputs, Mode::kSampleAppearance);
  }

  /// The appearances of all logs and evaluations of a split: [R, img_channels, W, W].
  at::Tensor fixed_appearances(const std::string& split) const {
    return get_fixed_examples(split)["appearance"].slice(0, 0, appearances_);
  }

  /// Images of every pose with each of `appearances` [R, ...]: [R, B, 3, W, W].
  at::Tensor transferred(const at::Tensor& poses, const at::Tensor& appearances) const {
    std::vector<at::Tensor> rows;
    for (const at::Tensor& appearance : appearances.split(1)) {
      const at::Tensor repeated = appearance.expand({poses.size(0), -1, -1, -1});
      rows.push_back(model_->forward({poses, repeated}, Mode::kAppearanceTransfer));
    }
    return at::stack(rows);
  }

  /// A picture of the fixed examples' appearances in the fixed examples' poses.
  at::Tensor matrix(const std::string& split) const {
    const at::Tensor appearances = fixed_appearances(split);
    const at::Tensor poses = get_fixed_examples(split)["stickman"].slice(0, 0, appearances.size(0));
    return vunet::transfer_matrix(appearances, poses, transferred(poses, appearances));
  }

  /// Each example's pose with all fixed appearances, `transfer` [B, R, 3, W, W], and the
  /// appearances' indices in the dataset, `appearance_index` [B, R].
  EvalOutputs transfer(const VUNet::Inputs& inputs, const std::string& split) const {
    const at::Tensor appearances = fixed_appearances(split);
    const auto& indices = get_fixed_examples(split).indices();
    const at::Tensor index = at::tensor(indices).slice(0, 0, appearances.size(0));
    return {.outputs = {{"transfer", transferred(inputs.pose, appearances).transpose(0, 1)},
                        {"appearance_index", index.expand({inputs.pose.size(0), -1})}}};
  }

  std::shared_ptr<VUNet> model_;
  Update& update_;
  Criterion criterion_;
  Mode eval_mode_;
  int64_t appearances_;
  bool writes_inputs_;
};

STEPOP_REGISTER_ITERATOR(VUNetIterator,
                         {"Renders the person of one image in the pose of another: VUNet."});

}  // namespace
}  // namespace stepop
