// How a session is saved in checkpoints, and restored from them.

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <set>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/config/batch_size.h"
#include "runtime/core/config/references.h"
#include "runtime/core/value/difference.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/checkpoint/shared_state.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/session/session.h"

namespace stepop {
namespace {

/// `shuffle` without its parameter `order`, which checkpoints record separately.
Value order_of_sampler(Value sampler) {
  if (!sampler.is_map()) return sampler;
  const Value* name = sampler.as_map().find("class");
  if (name != nullptr && *name == Value("shuffle")) sampler.as_map().erase("order");
  return sampler;
}

/// The keys that the order of training examples depends on, besides the dataset.
Value order_keys(const Config& config) {
  const Value* seed = config.peek("seed");
  const Value* sampler = config.peek("samplers/train");
  Value::Map keys;
  keys.set("seed", seed != nullptr ? *seed : own_default("seed"));
  keys.set("samplers/train", sampler != nullptr ? order_of_sampler(*sampler) : Value("shuffle"));
  return keys;
}

/// The number of examples in a batch, over all processes.
int64_t batch_size_of(const std::string& yaml, int64_t processes) {
  return read_batch_size(Config(parse_yaml(yaml, {"", 0})), processes);
}

bool is_changed(const std::string& before, const std::string& now) {
  return !differences(parse_yaml(before, {"", 0}), parse_yaml(now, {"", 0})).empty();
}

}  // namespace

Checkpoint Session::shared_checkpoint() const {
  Checkpoint shared = checkpoint();
  const auto names = networks_->names();
  const auto must_agree = [&](std::string_view name) {
    if (name.starts_with("ema_") || name.starts_with("swa_")) name.remove_prefix(4);
    return updates_.contains(std::string(name)) || std::ranges::find(names, name) != names.end();
  };
  const bool shards = own_key<bool>(config_, "distributed/shard_optimizer");
  shared.tensors = gathered_state(world_, shared.tensors, must_agree, [&](std::string_view name) {
    return shards && updates_.contains(std::string(name));
  });
  return shared;
}

void Session::share_beginning() {
  if (world_.is_alone()) return;
  const at::NoGradGuard no_grad;
  for (const auto& network : networks_->names()) {
    for (auto& [name, tensor] : networks_->tensors(network)) {
      const at::Tensor copy = tensor.detach().cpu().contiguous();
      world_.broadcast(copy);
      if (!world_.is_root()) at::Tensor(tensor.detach()).copy_(copy);
    }
  }
}

void Session::seed_rank(uint64_t key) {
  if (world_.rank() == 0) return;
  seed_generators(mix_seed({context_->seed, key, static_cast<uint64_t>(world_.rank())}),
                  context_->device);
}

/// Throws where the position of the checkpoint is no position in the training of this config.
void Session::check_position(const Checkpoint& checkpoint, const std::string& path) const {
  const Progress& progress = checkpoint.progress;
  const int64_t examples = splits_->examples("train");
  if (progress.train_examples > 0 && examples > 0 && progress.train_examples != examples) {
    throw Error(fmt::format(
        "{}: taken from a training on {}; datasets/train now has {}. Resume with the same "
        "data, or begin anew with these weights: -r",
        path, counted(progress.train_examples, "example"), with_thousands(examples)));
  }
  if (progress.batch == 0) return;
  const int64_t batches = splits_->order("train").batches_per_epoch();
  if (progress.batches_per_epoch != batches) {
    throw Error(fmt::format(
        "{}: taken in the middle of an epoch of {} batches, {} of them done; an epoch now has {}. "
        "Keep batch_size, drop_last, max_batches_per_epoch and the dataset until the end of the "
        "epoch, or take a checkpoint from there with -c",
        path, progress.batches_per_epoch, progress.batch, batches));
  }
  // The same number of batches would lead to another example. A stream has its own position.
  if (examples > 0 && !checkpoint.config.empty()) {
    const int64_t before = batch_size_of(checkpoint.config, progress.processes);
    const int64_t now = batch_size_of(config_yaml(), world_.size());
    if (before != now) {
      throw Error(fmt::format(
          "{}: taken in the middle of an epoch, in which a batch had {} examples; it now has {}. "
          "Keep batch_size until the end of the epoch, or take a checkpoint from there with -c",
          path, before, now));
    }
  }
  const std::string algorithm = splits_->order("train").algorithm();
  if (progress.order_algorithm != algorithm) {
    const char* before = progress.order_algorithm.empty() ? "stored" : "computed";
    const char* now = algorithm.empty() ? "stored" : "computed";
    throw Error(fmt::format(
        "{}: taken in the middle of an epoch whose shuffled order was {}; it is now {}, and "
        "another one. To resume with the order that the epoch began with: --samplers/train "
        "'{{class: shuffle, order: {}}}'; or take a checkpoint from the end of an epoch with -c",
        path, before, now, before));
  }
  check_order(checkpoint.config, path);
}

void Session::load_state(const Checkpoint& checkpoint, const std::string& path) {
  try {
    for (const auto& name : tracker_.load(state_of_rank(checkpoint.tensors, world_.rank()))) {
      const auto names = tracker_.names();
      const bool is_here = std::find(names.begin(), names.end(), name) != names.end();
      add_warning(fmt::format("{}: {}", path,
                              is_here
                                  ? "it has no state of " + name + ", which begins anew"
                                  : "it has a state of " + name + ", which no hook tracks now"));
    }
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}", path, error_text(error)));
  }
}

/// Without the key, a run computes as it did before: also one that began when oneDNN was not
/// chosen.
void Session::keep_onednn(const Checkpoint& checkpoint, const std::string& path) {
  is_onednn_chosen_ = !config_.has("onednn");
  if (!is_onednn_chosen_ || checkpoint.config.empty()) return;
  const auto before = read_onednn(Config(parse_yaml(checkpoint.config, {path, 0})));
  if (!before) return;
  config_.set_default("onednn", *before);
  at::globalContext().setUserEnabledMkldnn(*before);
  made_by_ = build_info(context_->device);
}

void Session::resume(const Checkpoint& checkpoint, const std::string& path) {
  check_position(checkpoint, path);
  keep_onednn(checkpoint, path);
  load_state(checkpoint, path);
  const Progress& progress = checkpoint.progress;
  const Progress of_config = position_;
  static_cast<Progress&>(position_) = progress;
  position_.planned_steps = of_config.planned_steps;
  position_.planned_steps_per_epoch = of_config.planned_steps_per_epoch;
  position_.train_examples = splits_->examples("train");
  position_.order_algorithm = splits_->order("train").algorithm();
  if (progress.processes != world_.size()) change_processes(checkpoint);
  // A changed config continues a run that a hook has ended.
  if (!position_.stopped_by.empty() && is_changed(checkpoint.config, config_yaml())) {
    position_.stopped_by.clear();
  }
  clock_.global_step = position_.global_step;
  // Earlier epochs may have had other numbers of steps, with another batch_size or accumulate.
  const int64_t batches = splits_->order("train").batches_per_epoch();
  const int64_t accumulate = settings_->accumulate;
  const int64_t left_of_epoch = (batches - position_.batch + accumulate - 1) / accumulate;
  const int64_t usual = (position_.epoch + 1) * settings_->steps_per_epoch - left_of_epoch;
  if (!config_.has("num_steps")) settings_->num_steps += position_.global_step - usual;
  tell_lengths(progress);
  if (!debug_) return;
  settings_->num_steps = position_.global_step + settings_->debug_steps;
  const int64_t in_later_epochs = std::max<int64_t>(settings_->debug_steps - left_of_epoch, 0);
  const int64_t per_epoch = settings_->steps_per_epoch;
  settings_->num_epochs = position_.epoch + 1 + (in_later_epochs + per_epoch - 1) / per_epoch;
}

/// Warns when lengths in epochs and in parts of the training are others than before.
void Session::tell_lengths(const Progress& before) {
  const int64_t planned = position_.planned_steps;
  if (planned == 0) return;
  if (planned != settings_->num_steps && !debug_) {
    add_warning(fmt::format(
        "parts of the training and \"end\" are of {} steps, as the config has them; it ends with "
        "step {}, as earlier epochs had other numbers of steps. num_steps: {} makes both the same",
        with_thousands(planned), with_thousands(settings_->num_steps), settings_->num_steps));
  }
  const int64_t examples = settings_->examples_per_step;
  const TrainingLength old{before.planned_steps_per_epoch, before.planned_steps, examples};
  const TrainingLength now{position_.planned_steps_per_epoch, planned, examples};
  if (before.planned_steps == 0 || old == now) return;
  std::string text = fmt::format(
      "the training is {} steps long in epochs of {}, and was planned with {} in epochs of {}: "
      "lengths in epochs and in parts of it follow",
      with_thousands(now.num_steps), with_thousands(now.steps_per_epoch),
      with_thousands(old.num_steps), with_thousands(old.steps_per_epoch));
  MetricSchedules followers;  // those that are built here follow nothing
  const MetricSchedules::Scope scope(followers);
  const auto number_in = [&](const BuiltSchedule& built, const TrainingLength& length) {
    const LengthScope lengths([&] { return length; });
    return Scheduled(built.config, built.path).at(position_.global_step);
  };
  std::set<std::string> places;  // an optimizer may have read its own twice
  for (const auto& built : schedules_) {
    const std::string place = join_path(built.config.path(), built.path);
    const double was = number_in(built, old);
    const double is = number_in(built, now);
    if (was == is || !places.insert(place).second) continue;
    text += fmt::format("\n  {} continues from {}, and was {}", place, short_number(is),
                        short_number(was));
  }
  add_warning(text);
}

/// Called after a resume with another number of processes: the old processes' own state is dropped.
/// Rank 0 gets the sums of the values to be logged; all processes get their names and counts.
void Session::change_processes(const Checkpoint& checkpoint) {
  const int64_t before = checkpoint.progress.processes;
  position_.processes = world_.size();
  seed_rank(static_cast<uint64_t>(position_.global_step));
  ScalarMeans sum;
  for (int rank = 0; rank < before; ++rank) {
    State means;
    const std::string prefix = std::string(kTrainMeans) + ".";
    for (const auto& [name, tensor] : state_of_rank(checkpoint.tensors, rank)) {
      if (name.starts_with(prefix)) means[name.substr(prefix.size())] = tensor;
    }
    sum.add_other(means);
  }
  if (!world_.is_root()) sum.clear_totals();
  train_means_ = std::move(sum);
  add_warning(
      fmt::format("the checkpoint is of {} process{}, and now there {}: the training continues "
                  "with the same batches, equal to rounding, and not bit by bit; random numbers "
                  "that steps draw are others",
                  before, before == 1 ? "" : "es",
                  world_.size() == 1 ? "is one" : fmt::format("are {}", world_.size())));
}

/// Checks that the order is the same: a position within an epoch depends on the epoch's order.
void Session::check_order(const std::string& yaml, const std::string& path) const {
  if (yaml.empty()) return;
  const auto changes = differences(order_keys(Config(parse_yaml(yaml, {path, 0}))),
                                   order_keys(Config(parse_yaml(config_yaml(), {path, 0}))));
  if (changes.empty()) return;
  throw Error(fmt::format(
      "{}: taken in the middle of an epoch, whose order of examples the config changes:\n{}\nKeep "
      "that until the end of the epoch, or take a checkpoint from there with -c",
      path, describe(changes)));
}

void Session::restore_for_evaluation(const Checkpoint& checkpoint, const std::string& path) {
  try {
    for (const auto& name : tracker_.names()) {
      if (name != kRandomState && !updates_.contains(name)) tracker_.load(name, checkpoint.tensors);
    }
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}", path, error_text(error)));
  }
  keep_onednn(checkpoint, path);
  const int64_t planned_steps = position_.planned_steps;
  const int64_t planned_steps_per_epoch = position_.planned_steps_per_epoch;
  static_cast<Progress&>(position_) = checkpoint.progress;
  position_.planned_steps = planned_steps;
  position_.planned_steps_per_epoch = planned_steps_per_epoch;
  position_.evaluation_folder.clear();
}

FiniteNames Session::finite_names() const {
  FiniteNames names;
  if (context_->on_nan == OnNan::kIgnore) return names;
  std::set<const void*> trained;
  for (const auto& [name, update] : updates_) {
    for (const auto& [parameter, tensor] : update->optimizer().parameters()) {
      trained.insert(tensor.const_data_ptr());
    }
  }
  const auto add_to = [](std::vector<std::string>& list, const std::string& name) {
    list.insert(list.end(), {name, "ema_" + name, "swa_" + name});
  };
  std::set<std::string> buffers;
  for (const auto& network : networks_->names()) {
    for (const auto& buffer : networks_->get(network)->named_buffers()) {
      buffers.insert(network + "." + buffer.key());
    }
  }
  for (const auto& [name, tensor] : tracker_.save()) {
    if (tensor.numel() == 0) continue;
    if (trained.contains(tensor.const_data_ptr())) add_to(names.weights, name);
    const bool is_buffer = buffers.contains(name) || name.ends_with(".running_mean") ||
                           name.ends_with(".running_var");  // also of a module of the iterator
    if (!is_buffer || name.starts_with("ema_") || name.starts_with("swa_")) continue;
    // A mask may hold infinity, or NaN, from the start.
    if (tensor.is_floating_point() && is_finite(tensor)) add_to(names.buffers, name);
  }
  return names;
}

void Session::restore_weights(const Checkpoint& checkpoint, const std::string& path) {
  try {
    for (const auto& name : networks_->names()) tracker_.load(name, checkpoint.tensors);
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}", path, error_text(error)));
  }
}

}  // namespace stepop
