// generator_gan and discriminator_gan.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

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

GanType read_gan_type(const Config& params) {
  const auto name = params.get<std::string>("gan_type");
  const auto& names = stepop::losses::gan_type_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<GanType>(found - names.begin());
  throw params.error(
      "gan_type", fmt::format("unknown type \"{}\"; there are: {}", name, fmt::join(names, ", ")));
}

/// The base of both losses: the discriminator, its inputs, and noise on the inputs.
class GanLoss : public Loss {
 public:
  GanLoss(const Config& params, Ports& ports, std::string_view network_key,
          const std::shared_ptr<torch::nn::Module>& network)
      : type_(read_gan_type(params)),
        fake_(ports.reads_all(params, "fake")),
        real_(ports.reads_all(params, "real")),
        noise_(params.get("noise", 0.0)),
        network_(params, network_key, network, fake_.size()) {
    if (real_.size() != fake_.size()) {
      throw params.error("fake", fmt::format("expected as many keys as real has, {}, found {}",
                                             real_.size(), fake_.size()));
    }
    if (!(noise_ >= 0)) throw params.error("noise", "expected 0 or more");
    if (params.has("min_loss") && params.get<double>("min_loss") != 0) {
      throw params.error("min_loss",
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
  GeneratorGan(const Config& params, Ports& ports)
      : GanLoss(params, ports, "discriminator", ports.module(params, "discriminator")),
        detach_real_(params.get("detach_real", true)) {
    if (type_ == GanType::kMaxSpread) {
      throw params.error("gan_type", "max_spread is a loss of discriminators alone");
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
  DiscriminatorGan(const Config& params, Ports& ports)
      : GanLoss(params, ports, "type", ports.context().networks.get(ports.trained_network())) {
    read_penalty(params);
    if (!has_penalty_) return;
    if (real_.size() != 1) {
      throw params.error("gradient_penalty", "is for discriminators with one input");
    }
    const auto name = [&](const char* key) {
      const Value* value = params.peek(key);
      return value->is_list() ? value->as_list().front().as_text() : value->as_text();
    };
    picture_ = ports.writes_key(params, "gradient_penalty",
                                fmt::format("{}_{}_gp_structure_img", name("fake"), name("real")));
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
  void read_penalty(const Config& params) {
    if (!params.has("gradient_penalty")) return;
    if (params.peek("gradient_penalty")->is_bool()) {
      has_penalty_ = params.get<bool>("gradient_penalty");
    } else {
      const auto name = params.get<std::string>("gradient_penalty");
      if (name != "wgan" && name != "r1") {
        throw params.error("gradient_penalty",
                           fmt::format("expected true, false, wgan or r1, found \"{}\"", name));
      }
      has_penalty_ = true;
      is_r1_ = name == "r1";
    }
    if (has_penalty_) weight_ = params.get("gradient_penalty_weight", 10.0);
  }

  /// The gradient as a picture around 0.5, which shows where the discriminator looks.
  static at::Tensor picture_of(const at::Tensor& gradient) {
    if (gradient.dim() != 4) return gradient;
    const std::vector<int64_t> pixels = {2, 3};
    const at::Tensor deviation = gradient.std(pixels, /*unbiased=*/true, /*keepdim=*/true);
    return gradient / (deviation * 2) - gradient.mean(pixels, /*keepdim=*/true) + 0.5;
  }

  bool has_penalty_ = false;
  bool is_r1_ = false;
  double weight_ = 10;
  Slot picture_;
};

STEPOP_REGISTER_LOSS(generator_gan, GeneratorGan,
                     {"How far a discriminator is from taking made examples for real ones.",
                      {{"gan_type", "", "gan, pixgan, ragan, lsgan or hinge"},
                       {"discriminator", "", "the network"},
                       {"real", "", ""},
                       {"fake", "", ""},
                       {"noise", "0", "uniform in [0, noise), added to both"},
                       {"detach_real", "true", "of ragan: no gradient by way of the real ones"}}});
STEPOP_REGISTER_LOSS(
    discriminator_gan, DiscriminatorGan,
    {"How badly the network that the step trains tells real examples from made ones.",
     {{"gan_type", "", "gan, pixgan, ragan, max_spread, lsgan or hinge"},
      {"real", "", ""},
      {"fake", "", ""},
      {"noise", "0", "uniform in [0, noise), added to both"},
      {"gradient_penalty", "false", "true or wgan: the gradient by real ones has norm 1; r1: 0"},
      {"gradient_penalty_weight", "10", ""}}});

}  // namespace
}  // namespace stepop::extensible
