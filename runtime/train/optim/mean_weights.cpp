#include "runtime/train/optim/mean_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "runtime/train/distributed/world.h"

namespace stepop {
namespace {

constexpr const char* kUnit = "weight_unit";
constexpr const char* kSums = "weight_sums";

}  // namespace

void MeanWeights::find_unit(const WeightedMean& mean, double examples, World* world) {
  const double weight = mean.known_weight() ? *mean.known_weight() : mean.weight().item<double>();
  double unit = examples > 0 ? weight / examples : 0;
  if (world != nullptr) unit = world->max({unit})[0];
  unit_ = unit > 0 ? unit : 1;
}

at::Tensor MeanWeights::seed(const WeightedMean& mean, double share, const StepClock& clock,
                             World* world) {
  const at::Tensor loss = mean.value().detach();
  const double of_step = clock.loss_weight() * share;
  shares_ += of_step;
  if (!mean.has_weight()) {
    factors_ += of_step;
    return at::full_like(loss, of_step);
  }
  are_given_ = true;
  const bool knows_examples = clock.step_examples != 0;
  const double examples =
      (knows_examples ? static_cast<double>(clock.batch_examples) : 1.0) * share;
  if (!unit_) find_unit(mean, examples, world);
  // A process without an example of this batch runs another in its place.
  if (examples == 0) return at::zeros_like(loss);
  const auto all = static_cast<double>(knows_examples ? clock.step_examples : clock.micro_batches);
  const double divisor = all * *unit_;
  if (mean.known_weight()) {
    const double factor = *mean.known_weight() / divisor;
    factors_ += factor;
    return at::full_like(loss, factor);
  }
  const at::Tensor factor = mean.weight().reshape({}).to(loss.device(), at::kDouble) / divisor;
  late_factors_ = late_factors_.defined() ? late_factors_.to(factor.device()) + factor : factor;
  // A copy, because the caller changes it.
  return factor.to(loss.scalar_type(), /*non_blocking=*/false, /*copy=*/true).reshape(loss.sizes());
}

at::Tensor MeanWeights::sums() const {
  if (!late_factors_.defined()) return at::tensor({shares_, factors_}, at::kDouble);
  // Filled on the device: a copy from the host would wait for it.
  return at::stack({at::full_like(late_factors_, shares_), late_factors_ + factors_});
}

void MeanWeights::correct(const std::vector<at::Tensor>& gradients) {
  if (!are_given_) return clear();
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  const at::Tensor sums = sums_of_all_.defined() ? sums_of_all_ : this->sums();
  clear();
  if (sums.is_cpu()) {
    const auto* numbers = sums.const_data_ptr<double>();
    // Where nothing counts, the gradients are 0.
    if (numbers[1] == numbers[0] || numbers[1] == 0) return;
    at::_foreach_mul_(gradients, numbers[0] / numbers[1]);
    return;
  }
  const at::Tensor factor = at::where(sums[1] == 0, at::zeros_like(sums[0]), sums[0] / sums[1]);
  for (const auto& gradient : gradients) {
    gradient.mul_(factor.to(gradient.device(), gradient.scalar_type()));
  }
}

void MeanWeights::clear() {
  are_given_ = false;
  shares_ = 0;
  factors_ = 0;
  late_factors_.reset();
  sums_of_all_.reset();
}

void MeanWeights::save(State& state) const {
  if (unit_) state[kUnit] = at::scalar_tensor(*unit_, at::kDouble);
  if (are_given_) state[kSums] = sums();
}

State MeanWeights::take(State& state) {
  State taken;
  for (const char* name : {kUnit, kSums}) {
    if (auto entry = state.extract(name)) taken.insert(std::move(entry));
  }
  return taken;
}

void MeanWeights::load(const State& state) {
  clear();
  const auto unit = state.find(kUnit);
  unit_.reset();
  if (unit != state.end()) unit_ = unit->second.item<double>();
  const auto sums = state.find(kSums);
  if (sums == state.end()) return;
  const at::Tensor numbers = sums->second.cpu();
  are_given_ = true;
  shares_ = numbers[0].item<double>();
  factors_ = numbers[1].item<double>();
}

}  // namespace stepop
