#include "iterators/diffusion/gaussian_diffusion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "iterators/diffusion/likelihood.h"
#include "runtime/core/base/error.h"

namespace stepop::diffusion {
namespace {

/// The betas of the taken timesteps, chosen so that the signal at each timestep stays the same.
std::vector<double> betas_of_taken(const DiffusionOptions& options) {
  std::vector<double> betas;
  double signal = 1;
  double signal_before = 1;
  size_t next = 0;
  for (size_t i = 0; i < options.betas.size(); ++i) {
    signal *= 1 - options.betas[i];
    if (!options.taken.empty()) {
      const bool is_taken =
          next < options.taken.size() && options.taken[next] == static_cast<int64_t>(i);
      if (!is_taken) continue;
      ++next;
    }
    betas.push_back(1 - signal / signal_before);
    signal_before = signal;
  }
  if (betas.size() < 2) {
    throw Error(fmt::format("a diffusion has 2 timesteps or more, found {}", betas.size()));
  }
  return betas;
}

at::Tensor numbers_taken(const DiffusionOptions& options) {
  std::vector<int64_t> taken = options.taken;
  if (taken.empty()) {
    taken.resize(options.betas.size());
    std::iota(taken.begin(), taken.end(), int64_t{0});
  }
  return at::tensor(taken, at::kLong);
}

/// `of_t`, a number for each of `t`, as something that is multiplied with x: [B, 1, ...].
at::Tensor for_x(const at::Tensor& of_t, const at::Tensor& t, const at::Tensor& x) {
  if (t.dim() > 1) return of_t.view(t.sizes());
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape.front() = t.size(0);
  return of_t.view(shape);
}

/// The mean over all dimensions but the first.
at::Tensor mean_of_each(const at::Tensor& x) { return x.flatten(1).mean(1); }

}  // namespace

DiffusionTables::DiffusionTables(const std::vector<double>& beta) {
  const size_t count = beta.size();
  std::vector<double> product(count);
  std::vector<double> before(count);
  double running = 1;
  for (size_t i = 0; i < count; ++i) {
    before[i] = running;
    running *= 1.0 - beta[i];
    product[i] = running;
  }
  const auto table = [&](const auto& value) {
    std::vector<double> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = value(i);
    return at::tensor(values, at::kDouble);
  };
  const auto variance = [&](size_t i) { return beta[i] * (1.0 - before[i]) / (1.0 - product[i]); };
  betas = table([&](size_t i) { return beta[i]; });
  signal = table([&](size_t i) { return product[i]; });
  signal_before = table([&](size_t i) { return before[i]; });
  sqrt_signal = table([&](size_t i) { return std::sqrt(product[i]); });
  sqrt_noise = table([&](size_t i) { return std::sqrt(1.0 - product[i]); });
  sqrt_recip = table([&](size_t i) { return std::sqrt(1.0 / product[i]); });
  sqrt_recip_less = table([&](size_t i) { return std::sqrt(1.0 / product[i] - 1); });
  posterior_variance = table(variance);
  posterior_log_variance = table([&](size_t i) { return std::log(variance(i == 0 ? 1 : i)); });
  posterior_of_start =
      table([&](size_t i) { return beta[i] * std::sqrt(before[i]) / (1.0 - product[i]); });
  posterior_of_now = table(
      [&](size_t i) { return (1.0 - before[i]) * std::sqrt(1.0 - beta[i]) / (1.0 - product[i]); });
  log_betas = table([&](size_t i) { return std::log(beta[i]); });
  large_log_variance = table([&](size_t i) { return std::log(i == 0 ? variance(1) : beta[i]); });
}

void DiffusionTables::to(const at::Device& device) {
  for (at::Tensor* table :
       {&betas, &signal, &signal_before, &sqrt_signal, &sqrt_noise, &sqrt_recip, &sqrt_recip_less,
        &posterior_variance, &posterior_log_variance, &posterior_of_start, &posterior_of_now,
        &log_betas, &large_log_variance}) {
    *table = table->to(device);
  }
}

GaussianDiffusion::GaussianDiffusion(const DiffusionOptions& options, const at::Device& device)
    : options_(options),
      taken_(numbers_taken(options).to(device)),
      tables_(betas_of_taken(options)) {
  tables_.to(device);
}

bool GaussianDiffusion::learns_variance() const {
  return options_.variance_type == VarianceType::kLearned ||
         options_.variance_type == VarianceType::kLearnedRange;
}

at::Tensor GaussianDiffusion::values_at(const at::Tensor& table, const at::Tensor& t,
                                        const at::Tensor& like) {
  return for_x(table.index_select(0, t.flatten()).to(like.scalar_type()), t, like);
}

at::Tensor GaussianDiffusion::add_noise(const at::Tensor& start, const at::Tensor& t,
                                        const at::Tensor& noise) const {
  return values_at(tables_.sqrt_signal, t, start) * start +
         values_at(tables_.sqrt_noise, t, start) * noise;
}

GaussianDiffusion::Normal GaussianDiffusion::posterior(const at::Tensor& start, const at::Tensor& x,
                                                       const at::Tensor& t) const {
  return {values_at(tables_.posterior_of_start, t, x) * start +
              values_at(tables_.posterior_of_now, t, x) * x,
          values_at(tables_.posterior_log_variance, t, x).expand_as(x)};
}

at::Tensor GaussianDiffusion::start_of_noise(const at::Tensor& x, const at::Tensor& t,
                                             const at::Tensor& noise) const {
  return values_at(tables_.sqrt_recip, t, x) * x - values_at(tables_.sqrt_recip_less, t, x) * noise;
}

at::Tensor GaussianDiffusion::noise_of_start(const at::Tensor& x, const at::Tensor& t,
                                             const at::Tensor& start) const {
  return (values_at(tables_.sqrt_recip, t, x) * x - start) /
         values_at(tables_.sqrt_recip_less, t, x);
}

at::Tensor GaussianDiffusion::start_of_previous(const at::Tensor& x, const at::Tensor& t,
                                                const at::Tensor& previous) const {
  return values_at(1.0 / tables_.posterior_of_start, t, x) * previous -
         values_at(tables_.posterior_of_now / tables_.posterior_of_start, t, x) * x;
}

at::Tensor GaussianDiffusion::start_by(const at::Tensor& mean, const at::Tensor& x,
                                       const at::Tensor& t) const {
  switch (options_.mean_type) {
    case MeanType::kEpsilon:
      return start_of_noise(x, t, mean);
    case MeanType::kPreviousX:
      return start_of_previous(x, t, mean);
    case MeanType::kStartX:
      return mean;
  }
  return {};
}

at::Tensor GaussianDiffusion::call(const Model& model, const at::Tensor& x,
                                   const at::Tensor& t) const {
  at::Tensor timesteps = taken_.index_select(0, t.flatten()).view(t.sizes());
  if (options_.rescale_timesteps) {
    timesteps = timesteps.to(at::kFloat) * (1000.0 / static_cast<double>(options_.betas.size()));
  }
  const at::Tensor output = model(x, timesteps).to(x.scalar_type());
  std::vector<int64_t> expected = x.sizes().vec();
  if (learns_variance()) expected[1] *= 2;
  if (output.sizes() != at::IntArrayRef(expected)) {
    throw Error(fmt::format(
        "the network makes [{}] of [{}], expected [{}]{}", fmt::join(output.sizes(), ", "),
        fmt::join(x.sizes(), ", "), fmt::join(expected, ", "),
        learns_variance() ? ": twice as many channels, as it also gives the variances" : ""));
  }
  return output;
}

GaussianDiffusion::Prediction GaussianDiffusion::predict(const at::Tensor& output,
                                                         const at::Tensor& x, const at::Tensor& t,
                                                         bool clips) const {
  Prediction made;
  at::Tensor mean = output;
  if (learns_variance()) {
    mean = output.narrow(1, 0, x.size(1));
    const at::Tensor values = output.narrow(1, x.size(1), x.size(1));
    if (options_.variance_type == VarianceType::kLearned) {
      made.log_variance = values;
    } else {
      const at::Tensor position = (values + 1) / 2;
      made.log_variance = position * values_at(tables_.log_betas, t, x) +
                          (1 - position) * values_at(tables_.posterior_log_variance, t, x);
    }
  } else {
    const bool is_large = options_.variance_type == VarianceType::kFixedLarge;
    const at::Tensor& table =
        is_large ? tables_.large_log_variance : tables_.posterior_log_variance;
    made.log_variance = values_at(table, t, x).expand_as(x);
  }
  made.start = start_by(mean, x, t);
  if (clips) made.start = made.start.clamp(-1, 1);
  const bool is_mean = options_.mean_type == MeanType::kPreviousX;
  made.mean = is_mean ? mean : posterior(made.start, x, t).mean;
  return made;
}

/// The divergence of the step back from the posterior, or at the first timestep the negative log
/// likelihood of the data; for each element, in bits. [B, C, ...]
at::Tensor GaussianDiffusion::variational_bound(const Prediction& prediction,
                                                const at::Tensor& start, const at::Tensor& x,
                                                const at::Tensor& t) const {
  const Normal truth = posterior(start, x, t);
  const at::Tensor divergence =
      normal_kl(truth.mean, truth.log_variance, prediction.mean, prediction.log_variance);
  const at::Tensor likelihood =
      discretized_log_likelihood(start, prediction.mean, 0.5 * prediction.log_variance);
  return at::where(for_x(t == 0, t, x), -likelihood, divergence) / std::numbers::ln2;
}

GaussianDiffusion::Losses GaussianDiffusion::losses(const Model& model, const at::Tensor& start,
                                                    const at::Tensor& t, const at::Tensor& noise,
                                                    const Filter& filter) const {
  const at::Tensor x = add_noise(start, t, noise);
  const at::Tensor output = call(model, x, t);
  const auto count = static_cast<double>(num_timesteps());
  const auto filtered_mean = [&](const at::Tensor& errors) {
    return mean_of_each(filter ? filter(errors) : errors);
  };
  Losses made;
  if (options_.loss_type == LossType::kKl || options_.loss_type == LossType::kRescaledKl) {
    const Prediction prediction = predict(output, x, t, /*clips=*/false);
    made.loss = filtered_mean(variational_bound(prediction, start, x, t));
    if (options_.loss_type == LossType::kRescaledKl) made.loss = made.loss * count;
    made.start = prediction.start;
    return made;
  }
  const at::Tensor mean = learns_variance() ? output.narrow(1, 0, x.size(1)) : output;
  if (learns_variance()) {
    // The bound trains the variances only, so the means are detached.
    const at::Tensor values = output.narrow(1, x.size(1), x.size(1));
    const Prediction prediction =
        predict(at::cat({mean.detach(), values}, 1), x, t, /*clips=*/false);
    made.vb = filtered_mean(variational_bound(prediction, start, x, t));
    if (options_.loss_type == LossType::kRescaledMse) made.vb = made.vb * (count / 1000.0);
  }
  at::Tensor target = noise;
  if (options_.mean_type == MeanType::kPreviousX) target = posterior(start, x, t).mean;
  if (options_.mean_type == MeanType::kStartX) target = start;
  made.mse = filtered_mean((target - mean).square());
  made.loss = made.vb.defined() ? made.mse + made.vb : made.mse;
  made.start = start_by(mean, x, t);
  return made;
}

}  // namespace stepop::diffusion
