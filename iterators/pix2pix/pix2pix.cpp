#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "iterators/losses/loss_manager.h"
#include "iterators/metrics/similarity.h"
#include "iterators/pix2pix/image_pool.h"
#include "iterators/pix2pix/pairs.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/update.h"

namespace stepop::pix2pix {
namespace {

/// Trains a generator to translate images, and a discriminator to distinguish generated from real
/// images (Isola et al., 2017).
///
/// Batches: `input` [B, C, H, W] and `target` [B, K, H, W] in [-1, 1]. Networks: `generator`, from
/// an input to a prediction of the target, and `discriminator`, from both to logits of patches.
/// Each step trains the discriminator first, and the generator then against the new discriminator.
class Pix2Pix : public Iterator {
 public:
  struct Params {
    double label_smoothing = 0;
    int64_t image_pool = 0;

    void declare(Parameters& p) {
      p.describe({"generator_optimizer", "", "as `optimizer`", false, {"component optimizer"}});
      p.describe({"discriminator_optimizer",
                  "generator_optimizer",
                  "as `optimizer`",
                  false,
                  {"component optimizer"}});
      p.describe({"loss_spec",
                  "basic",
                  "the losses that there are: `stepop list \"loss spec\"`",
                  false,
                  {"component loss spec"}});
      p.describe({"losses/<name>",
                  "",
                  "their weights: {weight: 100}; or one more: {loss: l2, weight: 1, tags: [G]}",
                  false,
                  {"any"}});
      p.add("label_smoothing", label_smoothing,
            "how much less than 1 the discriminator is to say of real pairs",
            at_least(0).below(0.5));
      p.add("image_pool", image_pool,
            "how many earlier fakes the discriminator is shown again, 50 in CycleGAN", at_least(0));
    }
  };

  Pix2Pix(const Params& params, const Context& context)
      : Iterator(context),
        generator_(context.network<Network>("generator")),
        discriminator_(context.network<MultiNetwork>("discriminator")),
        g_update_(context.update("generator_optimizer", {"generator"})),
        d_update_(discriminator_update(context)),
        losses_(context, "losses", losses::named_loss_specs(context, "loss_spec", "basic")),
        pool_(context, params.image_pool) {
    for (const auto& name : losses_.names("D")) {
      if (name == "D_real" || name == "D_fake") continue;
      throw context.config.error("losses/" + name,
                                 "the discriminator's losses are D_real and D_fake; one of the "
                                 "generator has the tag G");
    }
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor input = batch["input"];
    const at::Tensor target = batch["target"];
    const at::Tensor fake = generator_->forward(input).to(target.scalar_type());

    StepOps ops;
    ops.train_ops["train_op/discriminator"] = [=, this] {
      losses_("D_real", discriminate(input, target));
      const at::Tensor shown = pool_.exchange(at::cat({input, fake}, 1));
      losses_("D_fake", discriminate(shown.narrow(1, 0, input.size(1)),
                                     shown.narrow(1, input.size(1), fake.size(1))));
      d_update_.step(losses_.total("D"));
      return losses_.take_scalars();
    };
    ops.train_ops["train_op/generator"] = [=, this] {
      for (const auto& name : losses_.names("G")) {
        losses_.compute(name, inputs_of(name, input, fake, target));
      }
      g_update_.step(losses_.total("G"));
      return losses_.take_scalars();
    };
    ops.log_op = [=, this] {
      Logs logs{.images = {{"input_fake_target", side_by_side(input, fake, target)}}};
      for (const auto& [name, values] : generator_losses(input, fake, target)) {
        logs.scalars.set(name, values.mean());
      }
      return logs;
    };
    ops.eval_op = [=, this] {
      EvalOutputs outputs{
          .outputs = {{"input", stored(input)}, {"fake", fake}, {"target", stored(target)}},
          .labels = {}};
      const OrderedMap<at::Tensor> of_generator = generator_losses(input, fake, target);
      for (const auto& [name, loss] : of_generator) outputs.labels.set(name, loss);
      outputs.labels.set("loss", losses_.weighted_sum(of_generator));
      outputs.labels.set("psnr", metrics::psnr(fake, target, 2));
      if (std::min(fake.size(2), fake.size(3)) >= metrics::kSsimWindow) {
        outputs.labels.set("ssim", metrics::ssim(fake, target, 2));
      }
      return outputs;
    };
    return ops;
  }

  OrderedMap<std::string> eval_callbacks() const override { return {{"pairs", "image_pairs"}}; }

 private:
  /// The update by `discriminator_optimizer`, by default with the generator's options.
  static Update& discriminator_update(const Context& context) {
    const std::string path = "discriminator_optimizer";
    if (context.config.has(path)) return context.update(path, {"discriminator"});
    return context.update_from(path, context.config.at("generator_optimizer"),
                               context.networks.parameters({"discriminator"}));
  }

  /// Logits [B, 1, h, w].
  at::Tensor discriminate(const at::Tensor& input, const at::Tensor& output) const {
    return discriminator_->forward_all({input, output}).at(0);
  }

  /// The inputs of a generator loss: the discriminator's logits for G_GAN, both images for all
  /// others.
  std::vector<at::Tensor> inputs_of(const std::string& name, const at::Tensor& input,
                                    const at::Tensor& fake, const at::Tensor& target) const {
    if (name == "G_GAN") return {discriminate(input, fake)};
    return {fake, target};
  }

  /// The generator's losses without weights, one number for each pair: [B].
  OrderedMap<at::Tensor> generator_losses(const at::Tensor& input, const at::Tensor& fake,
                                          const at::Tensor& target) const {
    OrderedMap<at::Tensor> of_pairs;
    for (const auto& name : losses_.names("G")) {
      of_pairs.set(name, of_each(name, inputs_of(name, input, fake, target)));
    }
    return of_pairs;
  }

  /// Reduces a loss [B, ...] to [B]; a loss that is a batch mean is computed for each pair.
  at::Tensor of_each(const std::string& name, const std::vector<at::Tensor>& inputs) const {
    const at::Tensor values = losses_.values(name, inputs);
    if (values.dim() > 1) return values.flatten(1).mean(1);
    if (values.dim() == 1) return values;
    std::vector<at::Tensor> of_pairs;
    for (int64_t i = 0; i < inputs.front().size(0); ++i) {
      std::vector<at::Tensor> pair;
      for (const auto& batch : inputs) pair.push_back(batch.narrow(0, i, 1));
      of_pairs.push_back(losses_.values(name, pair));
    }
    return at::stack(of_pairs);
  }

  /// Converts images to 8 bits a channel, as in most files; other tensors are unchanged.
  static at::Tensor stored(const at::Tensor& images) {
    if (images.size(1) != 1 && images.size(1) != 3) return images;
    return ((images + 1) * 127.5).round().clamp(0, 255).to(at::kByte);
  }

  std::shared_ptr<Network> generator_;
  std::shared_ptr<MultiNetwork> discriminator_;
  Update& g_update_;
  Update& d_update_;
  losses::LossManager losses_;
  ImagePool pool_;
};

STEPOP_REGISTER_ITERATOR(Pix2Pix,
                         {"Translates images: a generator, and a discriminator of patches."});

}  // namespace
}  // namespace stepop::pix2pix
