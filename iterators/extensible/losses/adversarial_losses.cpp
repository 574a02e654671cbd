// generator_gan and discriminator_gan.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "iterators/extensible/step/loss.h"
#include "iterators/extensible/step/network_call.h"
#include "iterators/losses/adversarial.h"
#include "runtime/core/base/error.h"
#include "runtime/train/networks/networks.h"

namespace stepop::extensible {
namespace {

using stepop::losses::GanType;

/// What both losses are connected with.
struct GanParams {
  std::string gan_type;
  std::vector<Port> real;
  std::vector<Port> fake;
  double noise = 0;

  void declare(Parameters& p, std::string_view about_type) {
    p.require("gan_type", gan_type, about_type, one_of(stepop::losses::gan_type_names()));
    p.require("real", real, "");
    p.require("fake", fake, "");
    p.add("noise", noise, "uniform in [0, noise), added to both", at_least(0));
  }

  GanType type() const {
    const auto& names = stepop::losses::gan_type_names();
    return static_cast<GanType>(std::ranges::find(names, gan_type) - names.begin());
  }
};

/// The base of both losses: the discriminator, its inputs, and noise on the inputs.
class GanLoss : public Loss {
 public:
  GanLoss(const GanParams& params, const Config& config, Ports& ports, const Port& place,
          const std::shared_ptr<torch::nn::Module>& network)
      : type_(params.type()),
        fake_(ports.reads_all(params.fake)),
        real_(ports.reads_all(params.real)),
        noise_(params.noise),
        network_(place, network, fake_.size()) {
    if (real_.size() != fake_.size()) {
      throw config.error("fake", fmt::format("expected as many keys as real has, {}, found {}",
                                             real_.size(), fake_.size()));
    }
    if (config.has("min_loss") && config.get<double>("min_loss") != 0) {
      throw config.error("min_loss",
                         "is left out: how often a network trains would depend on a loss that is "
                         "on the device; every and after of the step say it");
    }
  }

 protected:
  /// Adds uniform noise in [0, noise).
  std::vector<at::Tensor> noisy(std::vector<at::Tensor> inputs) const {
    if (noise_ == 0) return inputs;
    for (auto& input : inputs) input = input + at::rand_like(input) * noise_;
    return inputs;
  }

  static std::vector<at::Tensor> tensors_at(const StepState& state,
                                            const std::vector<Slot>& slots) {
    std::vector<at::Tensor> tensors;
    for (const Slot slot : slots) tensors.push_back(state.tensor(slot));
    return tensors;
  }

  GanType type_;
  std::vector<Slot> fake_;
  std::vector<Slot> real_;
  double noise_;
  NetworkCall network_;
};

class GeneratorGan : public GanLoss {
 public:
  struct Params : GanParams {
    Port discriminator;
    bool detach_real = true;

    void declare(Parameters& p) {
      GanParams::declare(p, "gan, pixgan, ragan, lsgan or hinge");
      p.require("discriminator", discriminator, "the network");
      p.add("detach_real", detach_real, "of ragan: no gradient by way of the real ones");
    }
  };

  GeneratorGan(const Params& params, const Config& config, Ports& ports)
      : GanLoss(params, config, ports, params.discriminator, ports.module(params.discriminator)),
        detach_real_(params.detach_real) {
    if (type_ == GanType::kMaxSpread) {
      throw config.error("gan_type", "max_spread is a loss of discriminators alone");
    }
  }

  at::Tensor compute(StepState& state, const Iteration&, Scalars& metrics) override {
    at::Tensor real;
    if (stepop::losses::generator_needs_real(type_)) {
      real = network_(noisy(tensors_at(state, real_)));
      if (detach_real_) real = real.detach();
    }
    const at::Tensor fake = network_(noisy(tensors_at(state, fake_)));
    metrics.set("d_fake", fake.detach().mean());
    if (real.defined()) metrics.set("d_fake_diff", (fake.detach() - real.detach().mean()).mean());
    return stepop::losses::generator_loss(type_, real, fake);
  }

 private:
  bool detach_real_;
};

class DiscriminatorGan : public GanLoss {
 public:
  struct Params : GanParams {
    bool has_penalty = false;
    bool is_r1 = false;
    double penalty_weight = 10;

    void declare(Parameters& p) {
      GanParams::declare(p, "gan, pixgan, ragan, max_spread, lsgan or hinge");
      const Config* config =
          p.describe({"gradient_penalty",
                      "false",
                      "true or wgan: the gradient by real ones has norm 1; r1: 0",
                      false,
                      {.kind = "bool", .choices = {"wgan", "r1"}}});
      if (config != nullptr) read_penalty(*config);
      if (config == nullptr || has_penalty) p.add("gradient_penalty_weight", penalty_weight, "");
    }

    void read_penalty(const Config& config) {
      if (!config.has("gradient_penalty")) return;
      if (config.peek("gradient_penalty")->is_bool()) {
        has_penalty = config.get<bool>("gradient_penalty");
        return;
      }
      const auto name = config.get<std::string>("gradient_penalty");
      if (name != "wgan" && name != "r1") {
        throw config.error("gradient_penalty",
                           fmt::format("expected true, false, wgan or r1, found \"{}\"", name));
      }
      has_penalty = true;
      is_r1 = name == "r1";
    }
  };

  DiscriminatorGan(const Params& params, const Config& config, Ports& ports)
      : GanLoss(params, config, ports, {"type", config.where("type")},
                ports.context().networks.get(ports.trained_network())),
        has_penalty_(params.has_penalty),
        is_r1_(params.is_r1),
        weight_(params.penalty_weight) {
    if (!has_penalty_) return;
    if (real_.size() != 1) {
      throw config.error("gradient_penalty", "is for discriminators with one input");
    }
    picture_ = ports.writes(
        {fmt::format("{}_{}_gp_structure_img", params.fake.front().name, params.real.front().name),
         config.where("gradient_penalty")});
  }

  at::Tensor compute(StepState& state, const Iteration&, Scalars& metrics) override {
    const bool penalizes = has_penalty_ && at::GradMode::is_enabled();
    std::vector<at::Tensor> real = tensors_at(state, real_);
    std::vector<at::Tensor> fake = tensors_at(state, fake_);
    for (auto& input : real) input = input.detach();
    for (auto& input : fake) input = input.detach();
    if (penalizes) real.front().requires_grad_();
    const at::Tensor of_real = network_(noisy(real));
    const at::Tensor of_fake = network_(noisy(fake));
    metrics.set("d_fake", of_fake.detach().mean());
    metrics.set("d_real", of_real.detach().mean());
    const at::Tensor loss = stepop::losses::discriminator_loss(type_, of_real, of_fake);
    if (type_ == GanType::kRaGan) {
      metrics.set("d_fake_diff", (of_fake.detach() - of_real.detach().mean()).mean());
    }
    if (!penalizes) return loss;
    const at::Tensor gradient = stepop::losses::input_gradient(of_real, real.front());
    const at::Tensor penalty = (is_r1_ ? stepop::losses::r1_penalty(gradient)
                                       : stepop::losses::unit_norm_penalty(gradient)) *
                               weight_;
    metrics.set("", loss.detach());
    metrics.set("gradient_penalty", penalty.detach());
    if (state.wants(picture_)) state.set(picture_, picture_of(gradient.detach()));
    return loss + penalty;
  }

 private:
  /// The gradient as a picture around 0.5, which shows where the discriminator looks.
  static at::Tensor picture_of(const at::Tensor& gradient) {
    if (gradient.dim() != 4) return gradient;
    const std::vector<int64_t> pixels = {2, 3};
    const at::Tensor deviation = gradient.std(pixels, /*unbiased=*/true, /*keepdim=*/true);
    return gradient / (deviation * 2) - gradient.mean(pixels, /*keepdim=*/true) + 0.5;
  }

  bool has_penalty_;
  bool is_r1_;
  double weight_;
  Slot picture_;
};

STEPOP_REGISTER_LOSS(generator_gan, GeneratorGan,
                     {"How far a discriminator is from taking made examples for real ones."});
STEPOP_REGISTER_LOSS(
    discriminator_gan, DiscriminatorGan,
    {"How badly the network that the step trains tells real examples from made ones."});

}  // namespace
}  // namespace stepop::extensible
