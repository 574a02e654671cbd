#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "iterators/losses/adversarial.h"
#include "iterators/trainer/loss_model.h"
#include "iterators/trainer/models/inner_network.h"
#include "models/autoencoder_kl/autoencoder_kl.h"
#include "runtime/core/base/text.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/schedule.h"

namespace stepop {
namespace {

/// The types for which an image at a time is enough: all but max_spread.
std::vector<std::string> gan_names() {
  std::vector<std::string> names = losses::gan_type_names();
  std::erase(names, "max_spread");
  return names;
}

/// An autoencoder with normally distributed latents, and a discriminator of its outputs.
class AdversarialAutoencoder : public AdversarialModel {
 public:
  struct Params {
    std::string gan = "hinge";
    Scheduled kl_weight{1e-3};
    Scheduled adversarial_weight{0.1};

    void declare(Parameters& p) {
      p.describe({"autoencoder", "", "{class: AutoencoderKL, ...}", false, {"component model"}});
      p.describe({"discriminator",
                  "",
                  "a network from images to logits, one or many for each",
                  false,
                  {"component model"}});
      p.add("gan", gan, "how logits become losses", one_of(gan_names()));
      p.add("kl_weight", kl_weight,
            "of the divergence from N(0, I) in nats, a number or a schedule");
      p.add("adversarial_weight", adversarial_weight,
            "a number or a schedule: {class: cosine, from: 0, to: 0.1, start: 2000, steps: 500}");
    }
  };

  AdversarialAutoencoder(const Params& params, const Config& config)
      : AdversarialModel({"image"}),
        gan_(losses::gan_type_of(params.gan)),
        kl_weight_(params.kl_weight),
        adversarial_weight_(params.adversarial_weight),
        autoencoder_(
            register_module("autoencoder", build_inner<AutoencoderKL>(config, "autoencoder"))),
        discriminator_(
            register_module("discriminator", build_inner<Network>(config, "discriminator"))) {}

  void focus_main() override { train_only({"autoencoder"}); }
  void focus_disc() override { train_only({"discriminator"}); }

  LossOutput forward(const Batch& batch) override {
    const at::Tensor& image = batch["image"];
    return has_main_focus() ? main_loss(image) : discriminator_loss(image);
  }

  at::Tensor reconstruct(const Batch& batch) override {
    return autoencoder_->decode(autoencoder_->encode(batch["image"]).mean);
  }

  at::Tensor sample(const Batch& conditions) override {
    std::vector<int64_t> shape = autoencoder_->latent_shape();
    shape.insert(shape.begin(), conditions.size());
    const auto options = at::TensorOptions(at::kFloat).device(parameters().front().device());
    return autoencoder_->decode(at::randn(shape, options));
  }

 private:
  /// Decodes a random latent in training, and the mean in evaluations.
  at::Tensor made_of(const AutoencoderKL::Posterior& posterior) {
    return autoencoder_->decode(is_training() ? posterior.sample() : posterior.mean);
  }

  LossOutput main_loss(const at::Tensor& image) {
    const auto posterior = autoencoder_->encode(image);
    const at::Tensor made = made_of(posterior);
    const at::Tensor error = (made - image).square().flatten(1).mean(1);  // [B]
    const at::Tensor kl = posterior.kl();                                 // [B]
    at::Tensor loss = error + kl_weight_.at(global_step()) * kl;
    Scalars metrics{{"reconstruction", error}, {"kl", kl}};
    const double weight = adversarial_weight_.at(global_step());
    metrics.set("adversarial_weight", weight);
    if (weight > 0) {  // the discriminator is not needed while the weight is 0
      const at::Tensor real =
          losses::generator_needs_real(gan_) ? discriminator_->forward(image) : at::Tensor();
      const at::Tensor adversarial =
          losses::generator_loss(gan_, real, discriminator_->forward(made));
      metrics.set("adversarial", adversarial);
      loss = loss + weight * adversarial;
    }
    return {loss, std::move(metrics)};
  }

  LossOutput discriminator_loss(const at::Tensor& image) {
    at::Tensor made;
    {
      const at::NoGradGuard no_grad;
      made = made_of(autoencoder_->encode(image));
    }
    return losses::discriminator_loss(gan_, discriminator_->forward(image),
                                      discriminator_->forward(made));
  }

  losses::GanType gan_;
  Scheduled kl_weight_;
  Scheduled adversarial_weight_;
  std::shared_ptr<AutoencoderKL> autoencoder_;
  std::shared_ptr<Network> discriminator_;
};

STEPOP_REGISTER_MODEL(AdversarialAutoencoder,
                      {"An autoencoder with KL and a discriminator: an AdversarialModel."});

}  // namespace
}  // namespace stepop
