// stylegan2_divergence and stylegan2_pathlen.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/square.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "iterators/extensible/step/loss.h"
#include "iterators/extensible/step/network_call.h"
#include "iterators/losses/adversarial.h"
#include "iterators/losses/stylegan2.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

/// The loss of a generator, or of its discriminator, whose gradient by real images is pulled to
/// norm 1 every `gradient_penalty_frequency` iterations.
class Stylegan2Divergence : public Loss {
 public:
  struct Params {
    bool gen_loss = false;
    Port discriminator;
    Port fake;
    Port real;
    std::optional<int64_t> every;
    bool logistic = false;
    double noise = 0;

    void declare(Parameters& p) {
      p.require("gen_loss", gen_loss, "true: of the generator; false: of the discriminator");
      p.require("discriminator", discriminator, "the network");
      p.require("fake", fake, "");
      const auto of_discriminator = [&](const char* name, auto& value, const char* about,
                                        const Allowed& allowed = {}) {
        gen_loss ? p.add(name, value, about, allowed) : p.require(name, value, about, allowed);
      };
      of_discriminator("real", real, "of the discriminator's loss");
      of_discriminator("gradient_penalty_frequency", every,
                       "of the discriminator's: in 0, N, 2N; 0: never", at_least(0));
      p.add("logistic", logistic, "softplus, as in the paper, and not a hinge");
      p.add("noise", noise, "uniform in [0, noise), added to both", at_least(0));
    }
  };

  Stylegan2Divergence(const Params& params, Ports& ports)
      : is_of_generator_(params.gen_loss),
        fake_(ports.reads(params.fake)),
        real_(ports.reads(params.real)),
        network_(params.discriminator, ports, 1),
        noise_(params.noise),
        is_logistic_(params.logistic),
        every_(params.every.value_or(0)) {}

  at::Tensor compute(StepState& state, const Iteration& iteration, Scalars& metrics) override {
    if (is_of_generator_) {
      return stepop::losses::stylegan2_generator_loss(network_({noisy(state.tensor(fake_))}),
                                                      is_logistic_);
    }
    const at::Tensor made = network_({noisy(state.tensor(fake_).detach())});
    const bool penalizes =
        every_ > 0 && iteration.number % every_ == 0 && at::GradMode::is_enabled();
    const at::Tensor images = noisy(state.tensor(real_).detach()).detach();
    if (penalizes) images.requires_grad_();
    const at::Tensor real = network_({images});
    const at::Tensor loss = stepop::losses::stylegan2_discriminator_loss(real, made, is_logistic_);
    if (!penalizes) return loss;
    const at::Tensor penalty =
        stepop::losses::unit_norm_penalty(stepop::losses::input_gradient(real, images)) * kWeight;
    metrics.set("", loss.detach());
    metrics.set("gradient_penalty", penalty.detach());
    return loss + penalty;
  }

 private:
  static constexpr double kWeight = 10;

  at::Tensor noisy(const at::Tensor& images) const {
    return noise_ == 0 ? images : images + at::rand_like(images) * noise_;
  }

  bool is_of_generator_;
  Slot fake_;
  Slot real_;
  NetworkCall network_;
  double noise_;
  bool is_logistic_;
  int64_t every_;  ///< 0: no penalty.
};

/// The squared deviation of path lengths from their running mean. The first value is 0, without a
/// mean.
class Stylegan2PathLength : public Loss {
 public:
  struct Params {
    Port w_styles;
    Port gen;

    void declare(Parameters& p) {
      p.require("w_styles", w_styles, "[B, layers, D], by which the images were made");
      p.require("gen", gen, "the images, made in the same step");
    }
  };

  Stylegan2PathLength(const Params& params, const Config& config, Ports& ports)
      : styles_(ports.reads(params.w_styles)),
        images_(ports.reads(params.gen)),
        mean_(at::zeros({}, at::TensorOptions(at::kFloat).device(ports.context().device))) {
    std::string name = config.path();
    std::replace(name.begin(), name.end(), '/', '_');
    ports.context().track(name + "_mean", mean_);
    ports.context().track(name + "_calls", calls_);
  }

  at::Tensor compute(StepState& state, const Iteration& iteration, Scalars& metrics) override {
    if (!at::GradMode::is_enabled()) return {};
    const at::Tensor lengths =
        stepop::losses::path_lengths(state.tensor(styles_), state.tensor(images_));
    const at::Tensor average = lengths.detach().mean();
    metrics.set("path_length", average);
    const at::Tensor loss =
        calls_ == 0 ? lengths.sum() * 0 : at::square(lengths - mean_.detach()).mean();
    if (iteration.is_training) {
      const at::Tensor moved = calls_ == 0 ? average : mean_ * kKept + average * (1 - kKept);
      mean_ = at::where(at::isfinite(average), moved, mean_);
      ++calls_;
    }
    return loss;
  }

 private:
  static constexpr double kKept = 0.99;

  Slot styles_, images_;
  at::Tensor mean_;  ///< The running mean of path lengths, []; later values count more.
  int64_t calls_ = 0;
};

STEPOP_REGISTER_LOSS(stylegan2_divergence, Stylegan2Divergence,
                     {"The loss of StyleGAN 2, of its generator or of its discriminator."});
STEPOP_REGISTER_LOSS(stylegan2_pathlen, Stylegan2PathLength,
                     {"How far path lengths of StyleGAN 2 are from their running mean."});

}  // namespace
}  // namespace stepop::extensible
