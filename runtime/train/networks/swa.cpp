#include "runtime/train/networks/swa.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/error.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/batch_norm_layers.h"

namespace stepop {
namespace {

int64_t count_in(const State& state, const std::string& key) {
  const auto found = state.find(key);
  if (found == state.end() || found->second.numel() != 1 ||
      found->second.scalar_type() != at::kLong) {
    throw Error(fmt::format("swa.{}: expected one int64 in the checkpoint", key));
  }
  return found->second.item<int64_t>();
}

}  // namespace

Swa::Swa(const Config& config, bool must_be_restored)
    : Averages("swa"),
      most_batches_(own_key<int64_t>(config, "batch_norm_batches")),
      must_be_restored_(must_be_restored) {}

void Swa::add(const std::string& name, std::shared_ptr<torch::nn::Module> network) {
  Averages::add(name, network);
  const size_t known = layers_.size();
  for (const auto& item : network->named_modules()) {
    const std::string prefix = item.key().empty() ? "" : item.key() + ".";
    visit_batch_norm(*item.value(), [&](auto& layer) {
      add_statistics(name, prefix + "running_mean", layer.running_mean);
      add_statistics(name, prefix + "running_var", layer.running_var);
      add_statistics(name, prefix + "num_batches_tracked", layer.num_batches_tracked);
      layers_.push_back(item.value());
    });
  }
  if (layers_.size() > known) return;
  const auto buffers = network->named_buffers();
  const bool has_others = std::ranges::any_of(
      buffers.keys(), [](const auto& key) { return key.ends_with("running_mean"); });
  if (has_others) unmeasured_.push_back(name);
}

void Swa::update() {
  const at::NoGradGuard no_grad;
  if (count_ == 0) {
    start_averages();
  } else if (!parameters_.empty()) {  // PyTorch rejects an empty list
    at::_foreach_lerp_(averages_, weights(), 1.0 / static_cast<double>(count_ + 1));
  }
  ++count_;
}

State Swa::counts() const {
  return {{"count", at::full({}, count_, at::kLong)},
          {"measured", at::full({}, measured_, at::kLong)}};
}

void Swa::load_counts(const State& state) {
  if (state.empty() && must_be_restored_) {
    throw Error("no averages: the checkpoint was saved without swa. Use eval_weights: model");
  }
  const int64_t count = state.empty() ? 0 : count_in(state, "count");
  measured_ = state.empty() ? 0 : count_in(state, "measured");
  count_ = count;
}

Swa::Measurement::Measurement(Swa& swa) : swa_(swa) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& buffer : swa_.buffers_) {
    own_.push_back(buffer.variable_data());
    collected_.push_back(at::empty_like(buffer));
  }
  for (size_t i = 0; i < own_.size(); ++i) use_memory(swa_.buffers_[i], collected_[i]);
  for (const auto& module : swa_.layers_) {
    visit_batch_norm(*module, [&](auto& layer) {
      layer.reset_running_stats();
      momenta_.push_back(layer.options.momentum());
      layer.options.momentum(std::nullopt);  // the mean of all batches
    });
  }
}

Swa::Measurement::~Measurement() {
  for (size_t i = 0; i < own_.size(); ++i) use_memory(swa_.buffers_[i], own_[i]);
  for (size_t i = 0; i < swa_.layers_.size(); ++i) {
    visit_batch_norm(*swa_.layers_[i], [&](auto& layer) { layer.options.momentum(momenta_[i]); });
  }
}

void Swa::Measurement::keep() {
  const at::NoGradGuard no_grad;
  for (const auto& module : swa_.layers_) {
    visit_batch_norm(*module, [&](auto& layer) {
      if (layer.num_batches_tracked.template item<int64_t>() > 0) return;
      for (const at::Tensor& tensor :
           {layer.running_mean, layer.running_var, layer.num_batches_tracked}) {
        tensor.copy_(own_.at(swa_.place_of_buffer(tensor)));
      }
    });
  }
  swa_.statistics_ = collected_;
  swa_.measured_ = swa_.count_;
}

}  // namespace stepop
