#include "iterators/diffusion/timestep_sampler.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/train/optim/update.h"

namespace stepop::diffusion {

TimestepSampler::Drawn UniformSampler::draw(int64_t count) const {
  return {at::randint(timesteps_, {count}, at::kLong), {}};
}

LossSecondMomentSampler::LossSecondMomentSampler(int64_t timesteps)
    : losses_(at::zeros({timesteps, kHistory}, at::kDouble)),
      counts_(at::zeros({timesteps}, at::kLong)) {}

bool LossSecondMomentSampler::is_warmed_up() const {
  return (counts_ == kHistory).all().item<bool>();
}

at::Tensor LossSecondMomentSampler::probabilities() const {
  const int64_t timesteps = counts_.size(0);
  const double uniform = 1.0 / static_cast<double>(timesteps);
  if (!is_warmed_up()) return at::full({timesteps}, uniform, at::kDouble);
  const at::Tensor sizes = losses_.square().mean(1).sqrt();
  const at::Tensor sum = sizes.sum();
  if (!(sum.item<double>() > 0)) return at::full({timesteps}, uniform, at::kDouble);
  return sizes / sum * (1 - kUniform) + kUniform * uniform;
}

TimestepSampler::Drawn LossSecondMomentSampler::draw(int64_t count) const {
  const at::Tensor chances = probabilities();
  const at::Tensor timesteps = at::multinomial(chances, count, /*replacement=*/true);
  const at::Tensor weights =
      1 / (chances.index_select(0, timesteps) * static_cast<double>(chances.size(0)));
  return {timesteps, weights.to(at::kFloat)};
}

void LossSecondMomentSampler::update(const at::Tensor& timesteps, const at::Tensor& losses) {
  const at::Tensor which = timesteps.cpu();
  const at::Tensor values = losses.detach().to(at::kDouble).cpu().contiguous();
  const auto* t = which.const_data_ptr<int64_t>();
  const auto* value = values.const_data_ptr<double>();
  auto* history = losses_.mutable_data_ptr<double>();
  auto* counts = counts_.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < which.size(0); ++i) {
    if (!std::isfinite(value[i])) continue;  // on_nan handles such losses
    double* of_it = history + t[i] * kHistory;
    int64_t& count = counts[t[i]];
    if (count == kHistory) {
      std::copy(of_it + 1, of_it + kHistory, of_it);
    } else {
      ++count;
    }
    of_it[count - 1] = value[i];
  }
}

State LossSecondMomentSampler::state() const { return {{"losses", losses_}, {"counts", counts_}}; }

void LossSecondMomentSampler::load_state(const State& state) {
  const auto restore = [&](const char* name, at::Tensor& own) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.sizes() != own.sizes() ||
        found->second.scalar_type() != own.scalar_type()) {
      throw Error(fmt::format("the timestep sampler of the checkpoint is not one of {} timesteps",
                              counts_.size(0)));
    }
    own.copy_(found->second);
  };
  restore("losses", losses_);
  restore("counts", counts_);
}

std::unique_ptr<TimestepSampler> make_timestep_sampler(std::string_view name, int64_t timesteps) {
  if (name == "uniform") return std::make_unique<UniformSampler>(timesteps);
  if (name == "loss-second-moment") return std::make_unique<LossSecondMomentSampler>(timesteps);
  return nullptr;
}

at::Tensor spread_timesteps(int64_t first, int64_t count, int64_t range, int64_t timesteps) {
  std::vector<int64_t> spread;
  for (int64_t i = first; i < first + count; ++i) {
    // Float32, for the same rounding as in the original.
    const float position = static_cast<float>(i % range) / static_cast<float>(range);
    spread.push_back(static_cast<int64_t>(position * static_cast<float>(timesteps)));
  }
  return at::tensor(spread, at::kLong);
}

}  // namespace stepop::diffusion
