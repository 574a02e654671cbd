#include "iterators/losses/loss_manager.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "iterators/losses/image_losses.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/train/when/duration.h"

namespace stepop::losses {
namespace {

/// A loss that no op has computed in so many steps is warned of.
constexpr int64_t kStepsToUse = 5;
constexpr const char* kWeight = "weight";
constexpr const char* kRampStart = "start_ramp_it";
constexpr const char* kExample =
    "{weight: 1}, or a ramp {start_ramp_it: 2000, start_ramp_val: 0, end_ramp_it: 3500, "
    "end_ramp_val: 1}";

/// The ramp as the runtime's linear schedule.
Scheduled read_ramp(const Config& part) {
  const int64_t start = read_length(part, kRampStart, 0);
  const int64_t end = read_length(part, "end_ramp_it", 0);
  const auto from = part.get<double>("start_ramp_val");
  const auto to = part.get<double>("end_ramp_val");
  if (end <= start) {
    throw part.error("end_ramp_it",
                     fmt::format("expected a step after start_ramp_it, {}, found {}", start, end));
  }
  const Value::Map linear{
      {"class", "linear"}, {"from", from}, {"to", to}, {"start", start}, {"steps", end - start}};
  return {Config(Value(Value::Map{{kWeight, Value(linear)}})), kWeight};
}

Scheduled fixed_weight(double weight) {
  return {Config(Value(Value::Map{{kWeight, Value(weight)}})), kWeight};
}

Scheduled read_weight(const Config& part, std::optional<double> fallback) {
  const bool has_weight = part.has(kWeight);
  const bool has_ramp = part.has(kRampStart);
  if (has_weight && has_ramp) {
    throw part.error(kWeight, fmt::format("the weight has a ramp, too: remove either; `{}: "
                                          "!remove` in a later file takes the ramp away",
                                          kRampStart));
  }
  if (has_ramp) return read_ramp(part);
  if (has_weight) return {part, kWeight};
  if (fallback) return fixed_weight(*fallback);
  throw part.error("", fmt::format("expected {}", kExample));
}

bool has_tag(const LossSpec& spec, std::string_view tag) {
  return tag.empty() || std::find(spec.tags.begin(), spec.tags.end(), tag) != spec.tags.end();
}

STEPOP_REGISTER_LOSS_FUNCTION(l1, l1, {"The mean of |a - b|.", {}});
STEPOP_REGISTER_LOSS_FUNCTION(l2, l2, {"The mean of (a - b)^2.", {}});
STEPOP_REGISTER_LOSS_FUNCTION(chroma, chroma,
                              {"How much colours differ apart from how light they are.", {}});
STEPOP_REGISTER_LOSS_FUNCTION(sobel, sobel, {"How much Sobel's edges differ in strength.", {}});
STEPOP_REGISTER_LOSS_FUNCTION(laplacian, laplacian, {"How much fine details differ.", {}});
STEPOP_REGISTER_LOSS_FUNCTION(image_gradient, image_gradient,
                              {"How much edges differ in strength.", {}});

}  // namespace

LossFunctionRegistry& loss_functions() {
  static LossFunctionRegistry registry("loss function", "loss");
  return registry;
}

LossSpecRegistry& loss_specs() {
  static LossSpecRegistry registry("loss spec", "loss");
  return registry;
}

LossSpecs named_loss_specs(const Context& context, const std::string& path,
                           const std::string& fallback) {
  const auto name = context.config.get<std::string>(path, fallback);
  return loss_specs().factory(name, context.config, path)(context.config, context);
}

LossFunction of_two(at::Tensor (*function)(const at::Tensor& a, const at::Tensor& b)) {
  return [function](const std::vector<at::Tensor>& inputs) {
    if (inputs.size() != 2) {
      throw Error(fmt::format("expected two tensors, found {}", inputs.size()));
    }
    return function(inputs[0], inputs[1]);
  };
}

LossManager::LossManager(const Context& context, const std::string& path, const LossSpecs& specs,
                         int64_t history)
    : context_(context), length_(history) {
  const Config& whole = context.config;
  const Config config = whole.has(path) ? whole.at(path) : Config(Value(Value::Map{}));
  for (const auto& [name, spec] : specs) {
    if (spec.weight && !config.has(name)) {
      losses_.set(name, {.spec = spec,
                         .weight = fixed_weight(*spec.weight),
                         .is_only_watched = *spec.weight == 0,
                         .is_weight_fixed = true});
    } else if (config.has(name)) {
      add(name, config, specs);
    }
  }
  for (const auto& name : config.keys()) {
    if (!losses_.contains(name)) add(name, config, specs);
  }
  if (losses_.empty()) {
    throw whole.error(path, fmt::format("expected at least one loss of: {}", specs.key_list()));
  }
  if (length_ == 0) return;
  context.track(
      path, [this] { return save(); }, [this](const State& state) { load(state); });
}

void LossManager::add(const std::string& name, const Config& config, const LossSpecs& specs) {
  const LossSpec* known = specs.find(name);
  if (!config.peek(name)->is_map()) {
    throw config.error(
        name, fmt::format("expected {}, found {}", kExample, config.peek(name)->describe()));
  }
  const Config part = config.at(name);
  if (known == nullptr && !part.has("loss")) {
    std::vector<std::string> names;
    for (const auto& [each, spec] : specs) names.push_back(each);
    throw config.error(name, fmt::format("there is no such loss; there are: {}; one of your own "
                                         "says which function it is: {{loss: l1, weight: 1}}",
                                         fmt::join(sorted_by_distance(name, names), ", ")));
  }
  LossSpec spec;
  if (known != nullptr) spec = *known;
  if (part.has("loss")) {
    if (known != nullptr) {
      throw part.error("loss",
                       fmt::format("\"{}\" has a function; give the loss another name", name));
    }
    spec.function = loss_functions().factory(part.get<std::string>("loss"), part, "loss")(part);
  }
  if (part.has("tags")) spec.tags = part.get<std::vector<std::string>>("tags");
  const Value* weight = part.peek(kWeight);
  const bool is_fixed = weight != nullptr ? !weight->is_map() : !part.has(kRampStart);
  Loss made{.spec = spec, .weight = read_weight(part, spec.weight), .is_weight_fixed = is_fixed};
  made.is_only_watched = is_fixed && made.weight.at(0) == 0;
  losses_.set(name, std::move(made));
}

LossManager::Loss& LossManager::loss(std::string_view name) {
  if (Loss* found = losses_.find(name)) return *found;
  throw Error(fmt::format("no loss \"{}\"; on are: {}", name, losses_.key_list()));
}

std::vector<std::string> LossManager::names(std::string_view tag) const {
  std::vector<std::string> names;
  for (const auto& [name, loss] : losses_) {
    if (has_tag(loss.spec, tag)) names.push_back(name);
  }
  return names;
}

double LossManager::weight(std::string_view name) const {
  return loss(name).weight.at(context_.position.global_step);
}

at::Tensor LossManager::values(std::string_view name, const std::vector<at::Tensor>& inputs) const {
  try {
    return loss(name).spec.function(inputs);
  } catch (const std::exception& error) {
    throw Error(fmt::format("loss \"{}\": {}", name, error_text(error)));
  }
}

at::Tensor LossManager::compute(std::string_view name, const std::vector<at::Tensor>& inputs) {
  Loss& loss = this->loss(name);
  const at::AutoGradMode gradients(at::GradMode::is_enabled() && !loss.is_only_watched);
  const at::Tensor values = this->values(name, inputs);
  const at::Tensor mean = values.dim() == 0 ? values : values.mean();
  loss.map = values.dim() > 1 ? values.detach() : at::Tensor();
  loss.mean = mean.detach();
  loss.was_computed = true;
  if (length_ > 0) record(loss);
  const double weight = loss.weight.at(context_.position.global_step);
  loss.weighted = weight == 1 ? mean : mean * weight;
  return loss.weighted;
}

void LossManager::record(Loss& loss) const {
  if (!loss.ring.defined()) {
    loss.ring = at::empty({length_}, loss.mean.options().dtype(at::kDouble));
  }
  const int64_t place = loss.recorded++ % length_;
  if (loss.mean.is_cpu()) {
    loss.ring.mutable_data_ptr<double>()[place] = loss.mean.item<double>();
  } else {
    loss.ring[place].copy_(loss.mean, /*non_blocking=*/true);
  }
}

at::Tensor LossManager::weighted_sum(const OrderedMap<at::Tensor>& values) const {
  at::Tensor sum;
  for (const auto& [name, value] : values) {
    if (!has(name)) continue;
    const at::Tensor part = value * weight(name);
    sum = sum.defined() ? sum + part : part;
  }
  if (sum.defined()) return sum;
  throw Error(fmt::format("no loss to add up: switched on are {}, given were {}",
                          losses_.key_list(), values.key_list()));
}

at::Tensor LossManager::total(std::string_view tag) const {
  at::Tensor sum;
  for (const auto& [name, loss] : losses_) {
    if (!has_tag(loss.spec, tag) || !loss.weighted.defined()) continue;
    sum = sum.defined() ? sum + loss.weighted : loss.weighted;
  }
  if (sum.defined()) return sum;
  throw Error(fmt::format("the total of \"{}\": none of its losses was computed in this step: {}",
                          tag, fmt::join(names(tag), ", ")));
}

void LossManager::look_for_unused() {
  if (has_looked_for_unused_ || context_.position.global_step < kStepsToUse) return;
  has_looked_for_unused_ = true;
  for (const auto& [name, loss] : losses_) {
    if (loss.was_computed) continue;
    std::vector<std::string> tags;
    for (const auto& [other, used] : losses_) {
      if (!used.was_computed) continue;
      for (const auto& tag : used.spec.tags) {
        if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
      }
    }
    context_.log.warn(fmt::format(
        "loss \"{}\": no op has computed it so far, so that it is neither trained nor "
        "logged{}",
        name,
        tags.empty()
            ? ""
            : "; the losses that are have the tags " + fmt::format("{}", fmt::join(tags, ", ")) +
                  ": tags: [" + tags.front() + "]"));
  }
}

Scalars LossManager::take_scalars() {
  look_for_unused();
  Scalars scalars;
  for (auto& [name, loss] : losses_) {
    if (!loss.mean.defined()) continue;
    scalars.set(name, loss.mean);
    if (!loss.is_weight_fixed) scalars.set("weight/" + name, weight(name));
    loss.mean.reset();
    loss.weighted.reset();
  }
  return scalars;
}

std::vector<double> LossManager::history(std::string_view name) const {
  const Loss& loss = this->loss(name);
  std::vector<double> values;
  if (loss.recorded == 0) return values;
  const at::Tensor ring = loss.ring.to(at::kCPU);
  const double* numbers = ring.const_data_ptr<double>();
  for (int64_t i = std::max<int64_t>(0, loss.recorded - length_); i < loss.recorded; ++i) {
    values.push_back(numbers[i % length_]);
  }
  return values;
}

std::optional<double> LossManager::latest(std::string_view name) const {
  const Loss& loss = this->loss(name);
  if (loss.recorded == 0) return std::nullopt;
  return loss.ring[(loss.recorded - 1) % length_].item<double>();
}

std::optional<double> LossManager::mean(std::string_view name, int64_t count) const {
  const std::vector<double> values = history(name);
  const auto used = std::min<int64_t>(count, static_cast<int64_t>(values.size()));
  if (used <= 0) return std::nullopt;
  double sum = 0;
  for (auto value = values.end() - used; value != values.end(); ++value) sum += *value;
  return sum / static_cast<double>(used);
}

OrderedMap<double> LossManager::latest_of(std::string_view tag) const {
  OrderedMap<double> values;
  for (const auto& name : names(tag)) {
    if (const auto value = latest(name)) values.set(name, *value);
  }
  return values;
}

State LossManager::save() const {
  State state;
  for (const auto& [name, loss] : losses_) {
    state[name] = at::tensor(history(name), at::kDouble);
    state[name + ".recorded"] = at::tensor(loss.recorded);
  }
  return state;
}

/// Drops values of losses that the config no longer has; a new loss starts without values.
void LossManager::load(const State& state) {
  for (auto& [name, loss] : losses_) {
    const auto values = state.find(name);
    const auto recorded = state.find(name + ".recorded");
    loss.recorded = 0;
    if (values == state.end() || recorded == state.end()) continue;
    const int64_t count = values->second.numel();
    loss.ring = at::empty({length_}, at::TensorOptions(at::kDouble).device(context_.device));
    const int64_t kept = std::min(count, length_);
    loss.recorded = std::max(recorded->second.item<int64_t>(), kept);
    for (int64_t i = 0; i < kept; ++i) {
      loss.ring[(loss.recorded - kept + i) % length_].copy_(values->second[count - kept + i]);
    }
  }
}

}  // namespace stepop::losses
