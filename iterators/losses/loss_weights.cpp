#include "iterators/losses/loss_weights.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/nearest.h"

namespace stepop::losses {
namespace {

constexpr const char* kWeight = "weight";
constexpr const char* kRampStart = "start_ramp_it";
constexpr const char* kExample =
    "{weight: 1}, or a ramp {start_ramp_it: 2000, start_ramp_val: 0, end_ramp_it: 3500, "
    "end_ramp_val: 1}";

/// The ramp as the runtime's linear schedule.
Scheduled read_ramp(const Config& loss) {
  const int64_t start = loss.get_at_least(kRampStart, 0);
  const int64_t end = loss.get_at_least("end_ramp_it", 0);
  const auto from = loss.get<double>("start_ramp_val");
  const auto to = loss.get<double>("end_ramp_val");
  if (end <= start) {
    throw loss.error("end_ramp_it",
                     fmt::format("expected a step after start_ramp_it, {}, found {}", start, end));
  }
  const Value::Map linear{
      {"class", "linear"}, {"from", from}, {"to", to}, {"start", start}, {"steps", end - start}};
  return {Config(Value(Value::Map{{kWeight, Value(linear)}})), kWeight};
}

}  // namespace

LossWeights::LossWeights(const Config& config, const std::vector<std::string>& known) {
  for (const auto& name : config.keys()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw config.error(name, fmt::format("there is no such loss; there are: {}",
                                           fmt::join(sorted_by_distance(name, known), ", ")));
    }
    if (!config.peek(name)->is_map()) {
      throw config.error(
          name, fmt::format("expected {}, found {}", kExample, config.peek(name)->describe()));
    }
    const Config loss = config.at(name);
    weights_.set(name, read(loss));
    const Value* weight = loss.peek(kWeight);
    if (weight != nullptr && !weight->is_map() && at(name, 0) == 0) watched_.push_back(name);
  }
  if (weights_.empty()) {
    throw config.error("",
                       fmt::format("expected at least one loss of: {}", fmt::join(known, ", ")));
  }
}

Scheduled LossWeights::read(const Config& loss) {
  const bool has_weight = loss.has(kWeight);
  const bool has_ramp = loss.has(kRampStart);
  if (has_weight && has_ramp) {
    throw loss.error(kWeight, fmt::format("the weight has a ramp, too: remove either; `{}: "
                                          "!remove` in a later file takes the ramp away",
                                          kRampStart));
  }
  if (has_ramp) return read_ramp(loss);
  if (!has_weight) throw loss.error("", fmt::format("expected {}", kExample));
  return {loss, kWeight};
}

bool LossWeights::is_only_watched(std::string_view name) const {
  return std::find(watched_.begin(), watched_.end(), name) != watched_.end();
}

at::Tensor LossWeights::total(const OrderedMap<at::Tensor>& values, int64_t step) const {
  at::Tensor sum;
  for (const auto& [name, value] : values) {
    const Scheduled* weight = weights_.find(name);
    if (weight == nullptr) continue;
    const at::Tensor part = value * weight->at(step);
    sum = sum.defined() ? sum + part : part;
  }
  if (!sum.defined()) {
    throw Error(fmt::format("the total of no loss: on are {}, given were {}", weights_.key_list(),
                            values.key_list()));
  }
  return sum;
}

}  // namespace stepop::losses
