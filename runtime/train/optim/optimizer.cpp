#include "runtime/train/optim/optimizer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/optim/pieces.h"

namespace stepop {
OptimizerRegistry& optimizers() {
  static OptimizerRegistry registry("optimizer");
  return registry;
}

at::Tensor numbers_of(const at::Tensor& gradient) {
  return gradient.is_sparse() ? gradient._values() : gradient;
}

void AdamParams::declare(Parameters& p) {
  p.add("betas", betas, "decay of the averages of the gradient and of its square",
        at_least(0).below(1));
  p.add("eps", eps, "added to the root of the average square", at_least(0));
}

std::vector<Parameter> optimizer_parameters(const OptimizerParams& usual,
                                            std::vector<Parameter> own) {
  Parameters p;
  double lr = usual.lr;
  double weight_decay = usual.weight_decay;
  p.add("lr", lr, "learning rate, a number or a schedule");
  p.add("weight_decay", weight_decay, "a number or a schedule");
  std::vector<Parameter> all = p.all();
  for (Parameter& one : all) one.type.kind = "schedule";
  std::ranges::move(own, std::back_inserter(all));
  for (const auto& [name, kind, usual_text, about] :
       {std::array{"groups", "list", "none",
                   "list of {match: REGEX, lr: ..., weight_decay: ...}: other values for "
                   "parameters whose name matches, also one of a list; the first match wins"},
        std::array{"clip_norm", "any", "none",
                   "gradients are scaled down to this norm over all of them"},
        std::array{"clip_by", "text", "all",
                   "group: each of groups, and the rest, by a norm of its own"},
        std::array{"clip_value", "any", "none",
                   "gradients are cut to at most this, before clip_norm"},
        std::array{"clear_state_at", "list", "none",
                   "list of training steps in which averages and momenta begin anew"},
        std::array{
            "state_on_cpu", "bool", "false",
            "averages and momenta are in the host's memory but for the time of an update"}}) {
    all.push_back({name, usual_text, about, false, {.kind = kind}});
  }
  return all;
}

std::vector<Parameter> optimizer_parameters(std::string lr, std::string weight_decay,
                                            std::vector<Parameter> own) {
  std::vector<Parameter> all = optimizer_parameters(OptimizerParams(), std::move(own));
  all[0].default_value = std::move(lr);
  all[1].default_value = std::move(weight_decay);
  return all;
}

std::pair<double, double> read_betas(const Config& config, double beta1, double beta2,
                                     std::string_view path) {
  const auto betas = config.get(path, std::vector<double>{beta1, beta2});
  const bool is_valid = betas.size() == 2 && std::all_of(betas.begin(), betas.end(),
                                                         [](double b) { return b >= 0 && b < 1; });
  if (!is_valid) {
    throw config.error(path,
                       fmt::format("expected two numbers of at least 0 and below 1, found [{}]",
                                   fmt::join(betas, ", ")));
  }
  return {betas[0], betas[1]};
}

double read_non_negative(const Config& config, std::string_view path, double fallback) {
  const double number = config.get(path, fallback);
  if (number >= 0) return number;
  throw config.error(path, fmt::format("expected 0 or more, found {}", number));
}

void Optimizer::keep(const std::vector<char>& own) {
  for (Group& group : groups_) {
    for (size_t b = 0; b < group.buckets.size(); ++b) {
      for (size_t i = 0; i < group.members[b].size(); ++i) {
        group.buckets[b].is_own[i] = own.at(group.members[b][i]);
      }
    }
  }
}

std::vector<std::vector<at::Tensor>> Optimizer::gradients_by_group() const {
  std::vector<std::vector<at::Tensor>> groups;
  for (const Group& group : groups_) {
    std::vector<at::Tensor> gradients;
    for (const Bucket& bucket : group.buckets) {
      for (const auto& parameter : bucket.parameters) {
        if (parameter.grad().defined()) gradients.push_back(numbers_of(parameter.grad()));
      }
    }
    if (!gradients.empty()) groups.push_back(std::move(gradients));
  }
  return groups;
}

void Optimizer::make_slots() const {
  if (has_slots_) return;
  for (const Group& group : groups_) {
    for (const Bucket& bucket : group.buckets) {
      for (size_t s = 0; s < bucket.slots.size(); ++s) {
        auto& slot = bucket.slots[s];
        for (size_t i = 0; i < bucket.parameters.size(); ++i) {
          slot.push_back(bucket.is_own[i] ? make_slot(bucket, s, i) : at::Tensor());
          if (!is_state_on_cpu_ || !slot.back().defined() || slot.back().is_cpu()) continue;
          bucket.are_away.resize(bucket.slots.size());
          bucket.are_away[s] = 1;
          slot.back() = slot.back().cpu();
        }
      }
    }
  }
  has_slots_ = true;
}

at::Tensor Optimizer::make_slot(const Bucket& bucket, size_t /*slot*/, size_t i) const {
  return at::zeros_like(bucket.parameters[i].detach());
}

void Optimizer::step_again(double /*lr*/, double /*loss*/,
                           const std::function<double()>& /*again*/) {
  throw Error("this optimizer computes the loss once in a step");
}

void Optimizer::refuse_weight_decay(const Config& config, const char* name) {
  const auto refuse_in = [&](const Config& place) {
    if (!place.has("weight_decay")) return;
    const Value& value = *place.peek("weight_decay");
    if ((value.is_int() && value.as_int() == 0) || (value.is_float() && value.as_float() == 0)) {
      return;
    }
    throw place.error("weight_decay", fmt::format("{} has none: leave it out", name));
  };
  refuse_in(config);
  for (const Config& group : places_of_groups(config)) refuse_in(group);
}

std::vector<const Optimizer::Bucket*> Optimizer::buckets() const {
  std::vector<const Bucket*> buckets;
  for (const Group& group : groups_) {
    for (const Bucket& bucket : group.buckets) buckets.push_back(&bucket);
  }
  return buckets;
}

void Optimizer::assign(const Bucket& bucket, const at::Tensor& tensor, const at::Tensor& value) {
  tensor.copy_(bucket.found_inf ? at::where(bucket.found_inf->ne(0), tensor, value) : value);
}

std::optional<Optimizer::BadRate> Optimizer::bad_rate(int64_t global_step) const {
  for (const Group& group : groups_) {
    const double lr = group.lr.at(global_step);
    if (!fits_float(lr)) return BadRate{"the learning rate", lr};
    const double weight_decay = group.weight_decay.at(global_step);
    if (!fits_float(weight_decay)) return BadRate{"the weight decay", weight_decay};
    const double adamw_lr = group.adamw_lr ? group.adamw_lr->at(global_step) : 0;
    if (!fits_float(adamw_lr)) return BadRate{"the learning rate adamw_lr", adamw_lr};
  }
  return std::nullopt;
}

std::vector<double> Optimizer::lrs(int64_t global_step) const {
  std::vector<double> rates;
  for (const auto& group : groups_) rates.push_back(group.lr.at(global_step));
  return rates;
}

bool Optimizer::is_repeatable() const {
  if (!traits_.is_repeatable || is_state_on_cpu_) return false;
  return std::ranges::all_of(groups_, [&](const Group& group) {
    if (!group.lr.is_fixed() || !group.weight_decay.is_fixed()) return false;
    return !traits_.first_update_differs ||
           std::ranges::all_of(group.buckets, [&](const Bucket& bucket) {
             for (size_t i = 0; i < bucket.is_first.size(); ++i) {
               if (bucket.is_first[i] != 0 && bucket.parameters[i].requires_grad()) return false;
             }
             return true;
           });
  });
}

void Optimizer::mark_changed(const std::vector<at::Tensor>& parameters) {
  for (const auto& parameter : parameters) parameter.unsafeGetTensorImpl()->bump_version();
}

void Optimizer::step(int64_t global_step, const at::Tensor& found_inf, bool is_captured) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  make_slots();
  for (Group& group : groups_) {
    const double lr = group.lr.at(global_step);
    const double weight_decay = group.weight_decay.at(global_step);
    for (Bucket& bucket : group.buckets) {
      bucket.adamw_lr = group.adamw_lr ? group.adamw_lr->at(global_step) : 0;
      bucket.found_inf.reset();
      if (found_inf.defined()) {
        bucket.found_inf = found_inf.to(bucket.steps.front().device());
      }
      step_bucket(bucket, lr, weight_decay, is_captured);
    }
  }
}

/// The same work for more threads at once; the host makes so many views for a graph alone.
Optimizer::Bucket Optimizer::in_pieces(const Bucket& bucket) {
  Bucket pieces;
  pieces.found_inf = bucket.found_inf;
  pieces.slots.resize(bucket.slots.size());
  const int64_t size = piece_size(bucket.parameters);
  for (size_t i = 0; i < bucket.parameters.size(); ++i) {
    std::vector<at::Tensor> same = {bucket.parameters[i], bucket.gradients[i]};
    for (const auto& slot : bucket.slots) same.push_back(slot[i]);
    const int64_t most = have_one_layout(same) ? size : bucket.parameters[i].numel();
    const auto add = [&](std::vector<at::Tensor>& list, const at::Tensor& tensor) {
      for (auto& piece : pieces_of(tensor, most)) list.push_back(std::move(piece));
    };
    add(pieces.parameters, bucket.parameters[i]);
    add(pieces.gradients, bucket.gradients[i]);
    for (size_t s = 0; s < bucket.slots.size(); ++s) add(pieces.slots[s], bucket.slots[s][i]);
    pieces.steps.resize(pieces.parameters.size(), bucket.steps[i]);
    pieces.is_first.resize(pieces.parameters.size(), bucket.is_first[i]);
  }
  return pieces;
}

/// Whatever an update does to the state, that on the CPU is as it was until it ends.
void Optimizer::update_from_cpu(const Bucket& bucket, double lr, double weight_decay) {
  Bucket on_device = bucket;
  const auto visit_away = [&](const auto& visit) {
    for (size_t s = 0; s < bucket.slots.size(); ++s) {
      if (bucket.are_away[s] == 0) continue;
      for (size_t i = 0; i < bucket.slots[s].size(); ++i) {
        if (bucket.slots[s][i].defined()) visit(on_device.slots[s][i], bucket.slots[s][i]);
      }
    }
  };
  const at::Device device = bucket.parameters.front().device();
  visit_away([&](at::Tensor& there, const at::Tensor& here) { there = here.to(device); });
  update(on_device, lr, weight_decay);
  visit_away([](const at::Tensor& there, const at::Tensor& here) { here.copy_(there); });
}

void Optimizer::step_bucket(Bucket& bucket, double lr, double weight_decay, bool is_captured) {
  const size_t size = bucket.parameters.size();
  size_t missing = 0;
  bucket.gradients.resize(size);
  for (size_t i = 0; i < size; ++i) {
    const at::Tensor& parameter = bucket.parameters[i];
    at::Tensor& gradient = bucket.gradients[i];
    gradient = bucket.is_own[i] ? parameter.grad() : at::Tensor();
    if (!gradient.defined()) {
      ++missing;
    } else if (gradient.is_sparse()) {
      if (traits_.takes_sparse) continue;
      throw Error(
          "a gradient is sparse, as of an embedding with sparse(true): class: SparseAdam takes it, "
          "or leave sparse out");
    } else if (gradient.strides() != parameter.strides()) {
      // The kernels walk both tensors in the order of memory. Autograd's gradients have the
      // parameter's strides; this line is for a gradient that was set by hand.
      gradient = at::empty_like(parameter).copy_(gradient);
    }
  }
  if (missing == size) return;

  Bucket* active = &bucket;
  if (missing > 0) {
    active = &partial_;
    partial_.slots.resize(bucket.slots.size());
    partial_.found_inf = bucket.found_inf;
    partial_.are_away = bucket.are_away;
    partial_.adapt = bucket.adapt;
    partial_.adamw_lr = bucket.adamw_lr;
    for (size_t i = 0; i < size; ++i) {
      if (!bucket.gradients[i].defined()) continue;
      partial_.parameters.push_back(bucket.parameters[i]);
      partial_.gradients.push_back(bucket.gradients[i]);
      partial_.steps.push_back(bucket.steps[i]);
      partial_.is_first.push_back(bucket.is_first[i]);
      for (size_t s = 0; s < bucket.slots.size(); ++s) {
        partial_.slots[s].push_back(bucket.slots[s][i]);
      }
    }
  }
  if (count_update(*active)) {
    if (is_captured) {
      update(in_pieces(*active), lr, weight_decay);
    } else if (!active->are_away.empty()) {
      update_from_cpu(*active, lr, weight_decay);
    } else {
      update(*active, lr, weight_decay);
    }
    for (size_t i = 0; i < size; ++i) {
      if (!bucket.gradients[i].defined()) continue;
      bucket.is_first[i] = 0;
      bucket.parameters[i].unsafeGetTensorImpl()->bump_version();
    }
  }
  bucket.gradients.clear();
  if (missing > 0) partial_ = Bucket();
}

/// Counts the coming update; false when the update is known not to happen.
bool Optimizer::count_update(Bucket& active) const {
  if (active.found_inf) {
    // The code of a first update has to know whether the update happens: the host waits this once.
    const bool must_know =
        traits_.first_update_differs &&
        std::find(active.is_first.begin(), active.is_first.end(), 1) != active.is_first.end();
    if (must_know && active.found_inf->item<float>() != 0) return false;
    at::_foreach_add_(active.steps, at::rsub(*active.found_inf, 1));
  } else if (active.steps.front().is_cpu()) {
    for (const auto& count : active.steps) *count.mutable_data_ptr<float>() += 1;
  } else {
    at::_foreach_add_(active.steps, 1);
  }
  return true;
}

}  // namespace stepop
