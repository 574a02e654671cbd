// The injector that trains a diffusion.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iterators/diffusion/causal_timesteps.h"
#include "iterators/diffusion/gaussian_diffusion.h"
#include "iterators/diffusion/timestep_sampler.h"
#include "iterators/extensible/injectors/denoiser.h"
#include "iterators/extensible/step/injector.h"
#include "runtime/core/base/error.h"
#include "runtime/core/log/weighted_mean.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/optim/update.h"

namespace stepop::extensible {
namespace {

using diffusion::GaussianDiffusion;
using diffusion::TimestepSampler;

/// Which channels of errors [B, C, ...] count.
struct FilterParams {
  std::optional<double> proportion;
  std::optional<int64_t> low, high;

  void declare(Parameters& p) {
    p.add("channel_balancer_proportion", proportion,
          "errors of some channels, those with large ones more likely", above(0));
    p.add("channel_restriction_low", low, "errors of the channels from this one", at_least(0));
    p.add("channel_restriction_high", high, "to the one before this",
          above(static_cast<double>(low.value_or(0))));
  }
};

/// A filter of errors [B, C, ...] that keeps only some channels.
GaussianDiffusion::Filter make_filter(const FilterParams& params, const Config& config) {
  if (params.proportion && params.low) {
    throw config.error("channel_balancer_proportion",
                       "give it or channel_restriction_low and _high, not both");
  }
  if (params.high && !params.low) {
    throw config.error("channel_restriction_high", "belongs to channel_restriction_low: give both");
  }
  if (params.low) {
    const int64_t low = *params.low;
    const int64_t high = params.high ? *params.high  // throws: missing
                                     : config.get<int64_t>("channel_restriction_high");
    return [=](const at::Tensor& errors) {
      if (high > errors.size(1)) {
        throw Error(fmt::format("channel_restriction_high is {}, and there are {} channels", high,
                                errors.size(1)));
      }
      at::Tensor some = at::zeros_like(errors);
      some.narrow(1, low, high - low).fill_(1);
      return errors * some;
    };
  }
  if (!params.proportion) return {};
  return [proportion = *params.proportion](const at::Tensor& errors) {
    // Channels with large errors are more likely to be kept.
    const at::Tensor means = errors.detach().transpose(0, 1).flatten(1).mean(1);  // [C]
    const double count = static_cast<double>(means.size(0)) * proportion;
    const at::Tensor mask = at::bernoulli((means / means.sum() * count).clamp(0, 1));
    std::vector<int64_t> shape(static_cast<size_t>(errors.dim()), 1);
    shape[1] = -1;
    return errors * mask.view(shape);
  };
}

/// Computes the losses of a denoising network at random timesteps.
class GaussianDiffusionInjector : public Injector {
 public:
  struct Params : InOut {
    Denoiser::Params denoiser;
    Port out_vb;
    Port out_start;
    std::vector<Port> out_further;
    std::string sampler_type = "uniform";
    int64_t every = 0;
    std::optional<int64_t> range;
    bool causal = false;
    std::vector<double> slopes = {1, 8};
    FilterParams filter;

    void declare(Parameters& p) {
      InOut::declare(p, "what noise is added to, [B, C, ...] in [-1, 1]",
                     "the loss of each example, [B]");
      denoiser.declare(p, "the network: x, the timesteps and the inputs below");
      p.add("out_key_vb_loss", out_vb, "the loss of learned variances, [B]");
      p.add("out_key_x_start", out_start, "in, as the network predicts it");
      p.add("extra_model_output_keys", out_further, "keys for further outputs of the network");
      p.add("sampler_type", sampler_type, "or loss-second-moment: which timesteps are drawn",
            one_of({"uniform", "loss-second-moment"}));
      p.add("deterministic_timesteps_every", every,
            "the same timesteps in 0, N, 2N, as in all evaluations", at_least(0));
      p.add("deterministic_sampler_expected_batch_size", range,
            "over how many examples these are spread, by default the batch's", at_least(1));
      p.add("causal_mode", causal,
            "sequences [B, C, T]: each element is some timesteps ahead of the one before it, and "
            "the network gets timesteps [B, 1, T]");
      p.add("causal_slope_range", slopes, "how many: a number from here to there");
      filter.declare(p);
    }
  };

  GaussianDiffusionInjector(const Params& params, const Config& config, Ports& ports)
      : in_(ports.reads(params.in)),
        out_(ports.writes(params.out)),
        denoiser_(params.denoiser, ports),
        options_(params.denoiser.options),
        diffusion_(options_, ports.context().device),
        filter_(make_filter(params.filter, config)),
        sampler_(diffusion::make_timestep_sampler(params.sampler_type, diffusion_.num_timesteps())),
        every_(params.every),
        range_(params.range.value_or(0)),
        is_causal_(params.causal),
        slopes_(params.slopes),
        log_(ports.context().log) {
    refuse(config);
    if (slopes_.size() != 2 || !(0 <= slopes_[0] && slopes_[0] <= slopes_[1])) {
      throw config.error("causal_slope_range",
                         fmt::format("expected two numbers of 0 or more, the smaller one first, "
                                     "such as [1, 8], found [{}]",
                                     fmt::join(slopes_, ", ")));
    }
    check_outputs(params, config);
    out_vb_ = ports.writes(params.out_vb);
    out_start_ = ports.writes(params.out_start);
    out_further_ = ports.writes_all(params.out_further);
    if (sampler_->state().empty()) return;
    ports.context().track(
        config.path().empty() ? "timesteps" : config.path() + "/timesteps",
        [this] { return sampler_->state(); },
        [this](const State& state) { sampler_->load_state(state); });
  }

  void run(StepState& state, const Iteration& at) override {
    const at::Tensor& start = state.tensor(in_);
    check(start);
    const bool is_spread =
        !at.is_training || (every_ != 0 && at.number % every_ == 0);  // always the same
    const auto drawn = is_spread ? spread(start, at) : sampler_->draw(start.size(0));
    std::vector<at::Tensor> further;
    at::Tensor timesteps = drawn.timesteps.to(start.device());
    GaussianDiffusion::Filter filter = filter_;
    if (is_causal_) {
      auto causal = causal_timesteps(start, timesteps);
      timesteps = causal.t;
      filter = [this, is_open = causal.is_open](const at::Tensor& errors) {
        return filter_ ? filter_(errors * is_open) : errors * is_open;
      };
    }
    const auto losses = diffusion_.losses(denoiser_.model(state, 0, &further), start, timesteps,
                                          at::randn_like(start), filter);
    // The table of --check, and steps that are only computed, make no graph.
    if (!is_spread && at::GradMode::is_enabled()) sampler_->update(drawn.timesteps, losses.loss);
    timesteps_ = drawn.timesteps;
    errors_ = losses.mse.defined() ? losses.mse.detach() : at::Tensor();
    const at::Tensor& of_out = losses.mse.defined() ? losses.mse : losses.loss;
    const auto weighted = [&](const at::Tensor& values) {
      return drawn.weights.defined() ? values * drawn.weights.to(values.device()) : values;
    };
    state.set(out_, weighted(of_out));
    if (out_vb_) state.set(out_vb_, weighted(losses.vb));
    if (out_start_) state.set(out_start_, losses.start);
    if (further.size() != out_further_.size() && !out_further_.empty()) {
      throw Error(
          fmt::format("extra_model_output_keys names {} outputs, and the network has {} "
                      "beside its first",
                      out_further_.size(), further.size()));
    }
    for (size_t i = 0; i < out_further_.size(); ++i) state.set(out_further_[i], further[i]);
  }

  /// As in DL-Art-School: the mean squared error at the last quarter of the timesteps, and at the
  /// quarter before it. A batch without such timesteps has no number, in place of a 0.
  Logs extra_metrics() override {
    Logs logs;
    if (errors_.defined()) {
      const auto number = static_cast<double>(diffusion_.num_timesteps());
      const auto mean_where = [&](const at::Tensor& is_in) {
        return weighted_mean(errors_, is_in.to(errors_.device()));
      };
      logs.scalars.set("upper_quantile_mse_loss", mean_where(timesteps_.gt(0.75 * number)));
      logs.scalars.set(
          "mid_upper_quantile_mse_loss",
          mean_where(timesteps_.gt(0.5 * number).logical_and(timesteps_.lt(0.75 * number))));
    }
    const auto* sampler = dynamic_cast<const diffusion::LossSecondMomentSampler*>(sampler_.get());
    if (sampler != nullptr) logs.scalars.set("sampler_warmed_up", sampler->is_warmed_up() ? 1 : 0);
    return logs;
  }

 private:
  static void refuse(const Config& params) {
    if (params.has("preprocess_fn")) {
      throw params.error("preprocess_fn",
                         "names a method of a network in Python: write what it does as an injector "
                         "before this one");
    }
  }

  void check_outputs(const Params& params, const Config& config) const {
    const bool is_kl = options_.loss_type == diffusion::LossType::kKl ||
                       options_.loss_type == diffusion::LossType::kRescaledKl;
    const bool has_vb = diffusion_.learns_variance() && !is_kl;
    if (has_vb && !params.out_vb) {
      throw config.error("out_key_vb_loss",
                         "missing: the learned variances are trained by it alone; give it a key, "
                         "and that key a loss of the type direct");
    }
    if (!has_vb && params.out_vb) {
      throw config.error("out_key_vb_loss",
                         is_kl ? "with the loss_type kl there is one loss, that of out: leave it "
                                 "out"
                               : "there is none, as the variances are fixed (model_var_type): "
                                 "leave it out");
    }
  }

  /// Timesteps that are spread over the batch, or over the config's number of examples.
  TimestepSampler::Drawn spread(const at::Tensor& start, const Iteration& at) const {
    const int64_t count = start.size(0);
    const int64_t range = range_ > 0 ? range_ : std::max(at.batch_size, at.first + count);
    return {diffusion::spread_timesteps(at.first, count, range, diffusion_.num_timesteps()), {}};
  }

  diffusion::CausalTimesteps causal_timesteps(const at::Tensor& start,
                                              const at::Tensor& timesteps) const {
    if (start.dim() != 3) {
      throw Error(
          fmt::format("causal_mode is for sequences [B, C, T], found {}", describe_tensor(start)));
    }
    const at::Tensor random = at::rand({2}, at::kDouble);
    const double slope = slopes_[0] + (slopes_[1] - slopes_[0]) * random[0].item<double>();
    return diffusion::causal_timesteps(timesteps, start.size(2), diffusion_.num_timesteps(), slope,
                                       /*jitter=*/2 * random[1].item<double>() - 1);
  }

  void check(const at::Tensor& start) {
    if (start.dim() < 3 || !start.is_floating_point()) {
      throw Error(fmt::format("expected images or sequences [B, C, ...], found {}",
                              describe_tensor(start)));
    }
    if (is_checked_) return;
    is_checked_ = true;
    const double largest = start.numel() == 0 ? 0 : start.abs().max().item<double>();
    if (largest > 1.001) {
      log_.warn(
          fmt::format("gaussian_diffusion: values of up to {:.4g}, expected [-1, 1]: samples "
                      "are clipped to that; normalize them first",
                      largest));
    }
  }

  Slot in_, out_;
  Slot out_vb_, out_start_;
  std::vector<Slot> out_further_;
  Denoiser denoiser_;
  diffusion::DiffusionOptions options_;
  GaussianDiffusion diffusion_;
  GaussianDiffusion::Filter filter_;
  std::unique_ptr<TimestepSampler> sampler_;
  int64_t every_;
  int64_t range_;  ///< Examples over which deterministic timesteps are spread; 0: the batch.
  bool is_causal_;
  std::vector<double> slopes_;  ///< The least and the largest.
  RunLog& log_;
  bool is_checked_ = false;
  at::Tensor timesteps_;  ///< Of the last run.
  at::Tensor errors_;     ///< Of the last run, [B]; undefined without such a loss.
};

STEPOP_REGISTER_INJECTOR(gaussian_diffusion, GaussianDiffusionInjector,
                         {"The losses of a network that takes noise away (DDPM)."});

}  // namespace
}  // namespace stepop::extensible
