#include "iterators/extensible/runner.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "iterators/extensible/flow.h"
#include "iterators/extensible/step_metrics.h"
#include "iterators/extensible/trace.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"

namespace stepop::extensible {
namespace {

/// Disables the gradients of `parameters` during its lifetime.
class Frozen {
 public:
  explicit Frozen(const std::vector<at::Tensor>& parameters) {
    for (const auto& parameter : parameters) {
      if (!parameter.requires_grad()) continue;
      parameter.set_requires_grad(false);
      changed_.push_back(parameter);
    }
  }
  ~Frozen() {
    for (const auto& parameter : changed_) parameter.set_requires_grad(true);
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  std::vector<at::Tensor> changed_;
};

/// Runs `call`; puts the part's place in front of the message of an exception.
template <class Call>
auto in_place(const Part& part, const Call& call) {
  try {
    return call();
  } catch (const NonFinite&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format("{} ({}): {}", part.place, part.type, error_text(error)));
  }
}

bool has_all(const StepState& state, const std::vector<Ports::Use>& uses) {
  return std::all_of(uses.begin(), uses.end(),
                     [&](const auto& use) { return state.has(use.slot); });
}

/// `value` with the weight of `mean`, if it has one.
WeightedMean with_weight(at::Tensor value, const std::optional<WeightedMean>& mean) {
  if (!mean || !mean->has_weight()) return value;
  if (mean->known_weight()) return {std::move(value), *mean->known_weight()};
  return {std::move(value), mean->weight()};
}

void free_all(const Part& part, StepState& state) {
  for (const Slot slot : part.frees) state.free(slot);
}

}  // namespace

Runner::Runner(const Context& context, int64_t parts, const std::vector<std::string>& kept)
    : context_(context),
      steps_(build_steps(context, keys_)),
      evaluators_(build_evaluators(context, keys_)),
      networks_(context.networks),
      parts_(parts) {
  for (const auto& name : kept) kept_.push_back(keys_.slot(name));
  for (const auto& part : evaluators_) {
    for (const auto& use : part.reads) kept_.push_back(use.slot);
  }
  plan_memory(steps_, kept_);
  std::vector<char> is_read(keys_.size(), 0);
  const auto mark = [&](Slot slot) { is_read[static_cast<size_t>(slot.index)] = 1; };
  for (const Slot slot : kept_) mark(slot);
  for (const auto& step : steps_) {
    for (const Slot slot : step.requires_) mark(slot);
    for (const auto& part : step.injectors) {
      for (const auto& use : part.reads) mark(use.slot);
    }
    for (const auto& part : step.losses) {
      for (const auto& use : part.reads) mark(use.slot);
    }
  }
  keys_.set_read(std::move(is_read));
}

void Runner::fill(const Batch& batch, int64_t parts) {
  const int64_t size = batch.size();
  parts = std::min(parts, size);
  states_.resize(static_cast<size_t>(parts), StepState(keys_));
  shares_.clear();
  begins_.clear();
  for (int64_t i = 0; i <= parts; ++i) begins_.push_back(i * size / parts);
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].clear();
    shares_.push_back(static_cast<double>(begins_[i + 1] - begins_[i]) / static_cast<double>(size));
  }
  for (const auto& [name, tensor] : batch.tensors()) {
    const Slot slot = keys_.find(name);
    if (!slot || !keys_.is_read(slot)) continue;
    for (size_t i = 0; i < states_.size(); ++i) {
      states_[i].set(slot, parts == 1 ? tensor : tensor.slice(0, begins_[i], begins_[i + 1]));
    }
  }
}

std::optional<WeightedMean> Runner::run_part(Step& step, StepState& state, const Iteration& at,
                                             bool is_first, double share, bool trains,
                                             StepMetrics& metrics) {
  for (auto& part : step.injectors) {
    const bool is_on =
        part.is_for(at.is_training) && (is_first || !part.no_accum) && part.gate.is_open(at.number);
    if (is_on) {
      std::optional<at::NoGradGuard> no_grad;
      if (part.no_grad && trains) no_grad.emplace();
      if (trace_ != nullptr) trace_->begin();
      in_place(part, [&] {
        part.injector->run(state, at);
        metrics.add_all(part.name, part.injector->extra_metrics(), share);
      });
      if (trace_ != nullptr) trace_->end(step, part, state, {});
    } else if (trace_ != nullptr) {
      trace_->add_off(step, part);
    }
    free_all(part, state);
  }
  at::Tensor total;
  std::optional<WeightedMean> weighted;  // of the first loss that has a weight
  for (auto& part : step.losses) {
    const bool is_on = part.gate.is_open(at.number);
    // A loss that is off is computed and logged, but not trained.
    if (part.is_for(at.is_training) && ((at.is_training && is_on) || has_all(state, part.reads))) {
      std::optional<at::NoGradGuard> no_grad;
      if (!is_on && trains) no_grad.emplace();
      Scalars own;
      if (trace_ != nullptr) trace_->begin();
      const at::Tensor value = in_place(part, [&] { return part.loss->compute(state, at, own); });
      if (value.defined() && value.numel() != 1) {
        throw Error(fmt::format("{} ({}): a loss is one number, found {}", part.place, part.type,
                                value.numel()));
      }
      if (trace_ != nullptr) trace_->end(step, part, state, value);
      const std::optional<WeightedMean> mean = part.loss->weighted();
      if (value.defined() && !own.contains("")) {
        metrics.add(part.logged_as, with_weight(value.detach(), mean), share);
      }
      for (const auto& [name, number] : own) {
        metrics.add(name.empty() ? part.logged_as : fmt::format("{}_{}", part.logged_as, name),
                    number, share);
      }
      metrics.add_all(part.logged_as, part.loss->extra_metrics(), share);
      if (is_on && value.defined()) {
        const double weight = part.weight->at(at.number);
        const at::Tensor weighted_value = weight == 1 ? value : value.mul(weight);
        total = total.defined() ? total.add(weighted_value) : weighted_value;
        if (!weighted) weighted = mean;
      }
    }
    free_all(part, state);
  }
  if (!total.defined()) return std::nullopt;
  return with_weight(total, weighted);
}

void Runner::run(Step& step, int64_t iteration, Mode mode, StepMetrics& metrics) {
  const bool is_on =
      step.is_on(iteration) && std::all_of(step.requires_.begin(), step.requires_.end(),
                                           [&](Slot slot) { return states_.front().has(slot); });
  if (!is_on) {
    for (auto& state : states_) {
      for (const auto& part : step.injectors) free_all(part, state);
      for (const auto& part : step.losses) free_all(part, state);
    }
    return;
  }
  const bool trains = mode == Mode::kTrain && step.trains_in(iteration);
  Iteration at{iteration, mode != Mode::kEvaluate && iteration % step.gate.every == 0, 0,
               begins_.back()};
  std::optional<at::NoGradGuard> no_grad;
  if (!trains) no_grad.emplace();
  std::optional<Frozen> frozen;
  if (trains) frozen.emplace(step.others);
  bool has_gradient = false;
  for (size_t i = 0; i < states_.size(); ++i) {
    StepState& state = states_[i];
    at.first = begins_[i];
    const std::optional<WeightedMean> total =
        run_part(step, state, at, /*is_first=*/i == 0, shares_[i], trains, metrics);
    // Logs only totals that an update uses: in other training iterations a penalty may be missing.
    const bool is_whole =
        mode == Mode::kEvaluate || step.trains_in(iteration) || step.update == nullptr;
    if (total && is_whole) {
      metrics.add(step.total_logged_as, with_weight(total->value().detach(), total), shares_[i]);
    }
    if (trains && total) {
      step.update->backward(*total, /*retain_graph=*/false, shares_[i]);
      has_gradient = true;
      networks_.call(&NetworkHooks::after_backward, iteration);
    }
    for (const Slot slot : step.hands_on) state.detach(slot);
    for (const Slot slot : step.keeps_to_itself) state.free(slot);
  }
  if (!has_gradient || !context_.clock.is_last_micro_batch()) return;
  networks_.call(&NetworkHooks::before_step, iteration);
  networks_.watch_norms(step.network, *step.update,
                        [&](const std::string& group, const at::Tensor& norm) {
                          metrics.add(fmt::format("{}_{}", step.network, group), norm, 1);
                        });
  step.update->apply();
  networks_.call(&NetworkHooks::after_step, iteration);
}

Scalars Runner::run_all(const Batch& batch, int64_t parts, int64_t iteration, Mode mode) {
  fill(batch, parts);
  StepMetrics metrics;
  for (auto& step : steps_) run(step, iteration, mode, metrics);
  others_ = metrics.take_others();
  return metrics.take();
}

Scalars Runner::train(const Batch& batch, int64_t iteration) {
  if (context_.clock.micro_batch == 0) networks_.call(&NetworkHooks::update_for_step, iteration);
  return run_all(batch, parts_, iteration, Mode::kTrain);
}

Scalars Runner::look(const Batch& batch, int64_t iteration) {
  return run_all(batch, 1, iteration, Mode::kLook);
}

Scalars Runner::evaluate(const Batch& batch, int64_t iteration) {
  return run_all(batch, 1, iteration, Mode::kEvaluate);
}

void Runner::measure(int64_t iteration, EvalOutputs& made) {
  for (auto& part : evaluators_) {
    if (!part.measures(context_.position.split) || !part.gate.is_open(iteration)) continue;
    in_place(part, [&] {
      part.evaluator->evaluate(states_.front(), {iteration, /*is_training=*/false}, part.name,
                               made);
    });
  }
}

std::string Runner::table(const Batch& batch) {
  check(batch);
  const auto parts_on = [&](int64_t iteration) {
    int64_t count = 0;
    for (const auto& step : steps_) {
      if (!step.is_on(iteration)) continue;
      const auto is_on = [&](const Part& part) { return part.gate.is_open(iteration); };
      count += std::count_if(step.injectors.begin(), step.injectors.end(), is_on);
      count += std::count_if(step.losses.begin(), step.losses.end(), is_on);
    }
    return count;
  };
  const std::vector<int64_t> kinds =
      kinds_of_iterations(steps_, {}, first_iteration(context_.config));
  const int64_t iteration = *std::max_element(
      kinds.begin(), kinds.end(), [&](int64_t a, int64_t b) { return parts_on(a) < parts_on(b); });
  Trace trace(keys_, context_.device);
  trace_ = &trace;
  try {
    look(batch, iteration);
  } catch (...) {
    trace_ = nullptr;
    throw;
  }
  trace_ = nullptr;
  return fmt::format("steps in iteration {}:\n{}", with_thousands(iteration), trace.text());
}

std::vector<at::Tensor> Runner::kept_parts(const std::string& name) const {
  const Slot slot = keys_.find(name);
  if (!slot) return {};
  std::vector<at::Tensor> parts;
  for (const auto& state : states_) {
    const auto* tensor = std::get_if<at::Tensor>(&state.item(slot));
    if (tensor == nullptr) return {};
    parts.push_back(tensor->detach());
  }
  return parts;
}

at::Tensor joined(const std::vector<at::Tensor>& parts) {
  if (parts.empty()) return {};
  return parts.size() == 1 || parts.front().dim() == 0 ? parts.front() : at::cat(parts);
}

}  // namespace stepop::extensible
