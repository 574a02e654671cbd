#include "runtime/train/step/split_step.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/core/measure/profile.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/step/random_fork.h"
#include "runtime/train/step/snapshot.h"

namespace stepop {
namespace {

/// Sets the mode of all networks after another split's ops ran in the other mode. When the iterator
/// keeps one network in evaluation mode while another network trains, that network stays in its
/// mode.
void set_mode(Networks& networks, bool trains) {
  const bool is_any_training = std::ranges::any_of(
      networks.names(), [&](const auto& name) { return networks.get(name)->is_training(); });
  if (is_any_training != trains) networks.set_training(trains);
}

}  // namespace

SplitStep::SplitStep(std::string split, Iterator& iterator, const Context& context,
                     Position& position, LoaderOptions loader_options, std::string stream_state)
    : split_(std::move(split)),
      iterator_(iterator),
      context_(context),
      position_(position),
      options_(std::move(loader_options)),
      begin_state_(std::move(stream_state)) {}

void SplitStep::begin() {
  logs_.clear();
  ops_.reset();
  batch_.reset();
}

uint64_t SplitStep::fork_seed() const {
  const uint64_t seed =
      mix_seed({context_.seed, seed_of(split_), static_cast<uint64_t>(position_.global_step)});
  return context_.rank == 0 ? seed : mix_seed({seed, static_cast<uint64_t>(context_.rank)});
}

const Batch& SplitStep::batch() {
  if (!batch_) {
    const Span span(context_.profile.get(), {"waiting for ", split_, " data"});
    if (!loader_) {
      loader_ = std::make_unique<Loader>(
          context_.splits.source(split_, context_.splits.order(split_),
                                 {.batch = options_.first_batch, .state = begin_state_},
                                 context_.slice()),
          options_);
    }
    if (!context_.world.is_alone()) {
      const int64_t size = context_.splits.order(split_).size_of(loader_->position());
      share_ = static_cast<double>(context_.slice().length(size)) / static_cast<double>(size);
    }
    batch_ = loader_->next();
  }
  return *batch_;
}

void SplitStep::take_batch_anyway() {
  try {
    batch();
  } catch (const std::exception&) {
    ++lost_batches_;
  }
}

void SplitStep::take_part(const Batch& whole, int64_t begin, int64_t end) {
  take(whole.rows(begin, end));
}

void SplitStep::take(Batch batch, std::optional<StepOps> ops) {
  ops_.reset();  // and with it the graph of the part before
  logs_.clear();
  ops_ = std::move(ops);
  batch_ = std::move(batch);
}

const StepOps& SplitStep::ops(bool trains) {
  if (!ops_) {
    batch();
    const bool is_training = split_ == "train";
    const auto call = [&] {
      return call_step_op(iterator_, context_, position_, split_, is_training, *batch_);
    };
    std::optional<RandomFork> fork;
    std::optional<KeptBuffers> buffers;
    if (!trains) {
      fork.emplace(fork_seed(), context_.device);
      buffers.emplace(context_);
    }
    ops_ = run_on(context_, split_, *batch_, call);
  }
  return *ops_;
}

Scalars SplitStep::train(const std::string& name) {
  const TrainOp* op = ops(/*trains=*/true).find_train_op(name);
  if (op == nullptr) throw missing_op(context_, split_, name, *ops_);
  const Span span(context_.profile.get(), {split_, "/", name});
  const SplitGuard guard(position_, split_, share_);
  return run_on(context_, split_, *batch_, [&] { return run_op(context_, split_, name, *op); });
}

const Logs& SplitStep::log(const std::string& name) {
  if (const Logs* done = logs_.find(name)) return *done;
  const LogOp* op = ops(/*trains=*/false).find_log_op(name);
  if (op == nullptr) throw missing_log_op(context_, split_, name, *ops_);
  const Span span(context_.profile.get(), {split_, "/", name});
  const SplitGuard guard(position_, split_, share_);
  const at::NoGradGuard no_grad;
  set_mode(context_.networks, split_ == "train");
  const KeptBuffers buffers(context_);
  const RandomFork fork(mix_seed({fork_seed(), seed_of(name)}), context_.device);
  const Logs logs =
      run_on(context_, split_, *batch_, [&] { return run_op(context_, split_, name, *op); });
  return logs_.set(name, checked(logs, split_ + "/" + name));
}

SplitStep& SplitSteps::operator[](const std::string& split) {
  auto& step = splits_[split];
  if (!step) {
    const auto state = position_.streams.find(split);
    step = std::make_unique<SplitStep>(split, iterator_, context_, position_, loader_options(split),
                                       state == position_.streams.end() ? "" : state->second);
  }
  return *step;
}

LoaderOptions SplitSteps::loader_options(const std::string& split) const {
  LoaderOptions options = context_.splits.loader_options();
  if (split == "train") {
    const int64_t batches_per_epoch = context_.splits.order(split).batches_per_epoch();
    options.first_batch = position_.epoch * batches_per_epoch + position_.batch;
    options.interrupt = interrupt_;
    options.profile = context_.profile;
  } else {
    // No batch of another split is fetched before one of its ops is due.
    options.workers = 0;
    options.first_batch = position_.batches_taken[split];
  }
  return options;
}

void SplitSteps::begin() {
  for (auto& [name, split] : splits_) split->begin();
}

void SplitSteps::save_position() {
  for (const auto& [name, split] : splits_) {
    if (name != "train") position_.batches_taken[name] = split->batches_taken();
    if (const auto state = split->stream_state()) position_.streams[name] = state();
  }
}

}  // namespace stepop
