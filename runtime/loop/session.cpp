#include "runtime/loop/session.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "eval_out/callbacks/callback.h"
#include "eval_out/callbacks/evaluation_callbacks.h"
#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/checkpoint/shared_state.h"
#include "runtime/config/difference.h"
#include "runtime/config/references.h"
#include "runtime/config/taken_default.h"
#include "runtime/config/yaml_reader.h"
#include "runtime/config/yaml_writer.h"
#include "runtime/iterator/eval_functor.h"
#include "runtime/loop/checks/parameter_ownership.h"
#include "runtime/loop/checks/preflight.h"
#include "runtime/loop/network_graphs.h"
#include "runtime/run/data_files.h"
#include "runtime/run/device.h"
#include "runtime/run/provenance.h"
#include "runtime/run/thread_wait.h"
#include "runtime/step/random_fork.h"
#include "runtime/when/logged_metric.h"

namespace stepop {
namespace {

constexpr int64_t kDefaultSeed = 1;
/// Reserved for what train ops returned since the last log.
constexpr const char* kTrainMeans = "train_means";
/// Reserved for the best value of the metric that ends a training.
constexpr const char* kStopWhen = "stop_when";
/// Reserved for the schedules that follow a metric.
constexpr const char* kSchedules = "schedules";

void track_generators(Tracker& tracker, const c10::Device& device) {
  tracker.add(
      kRandomState,
      [device] {
        State state{{"cpu", generator_state(c10::kCPU)}};
        if (!device.is_cpu()) state.emplace("cuda", generator_state(device));
        return state;
      },
      [device](const State& state) {
        const auto cpu = state.find("cpu");
        if (cpu == state.end())
          throw Error(std::string("random.cpu: missing from the checkpoint. ") + kHowToFit);
        set_generator_state(c10::kCPU, cpu->second);
        const auto cuda = state.find("cuda");
        if (!device.is_cpu() && cuda != state.end()) set_generator_state(device, cuda->second);
      });
}

/// `shuffle` without its parameter `order`, which checkpoints record by itself.
Value order_of_sampler(Value sampler) {
  if (!sampler.is_map()) return sampler;
  const Value* name = sampler.as_map().find("class");
  if (name != nullptr && *name == Value("shuffle")) sampler.as_map().erase("order");
  return sampler;
}

/// What an order of training examples depends on beside the dataset.
Value order_keys(const Config& config) {
  const Value* seed = config.peek("seed");
  const Value* sampler = config.peek("samplers/train");
  Value::Map keys;
  keys.set("seed", seed != nullptr ? *seed : Value(kDefaultSeed));
  keys.set("samplers/train", sampler != nullptr ? order_of_sampler(*sampler) : Value("shuffle"));
  return keys;
}

bool is_changed(const std::string& before, const std::string& now) {
  return !differences(parse_yaml(before, {"", 0}), parse_yaml(now, {"", 0})).empty();
}

}  // namespace

Session::Session(const Config& config, bool train, bool debug, bool allow_unknown, World* world)
    : config_(config),
      alone_(world == nullptr ? std::make_unique<World>() : nullptr),
      world_(world == nullptr ? *alone_ : *world),
      train_(train),
      debug_(debug) {
  const c10::Device device = read_device(config_, world_.place().local_rank);
  if (!device.is_cpu() && !world_.is_alone()) {
    throw config_.error("device",
                        fmt::format("{}: several processes train on CPUs; NCCL, which GPUs "
                                    "need, is not built in. device: cpu, or one process",
                                    device.str()));
  }
  apply_backend_settings(config_, world_.place().local_size);
  const int threads = at::get_num_threads();
  if (threads > 1 && own_thread_wait() == "auto") spin_watch_.emplace(threads);
  const auto seed = static_cast<uint64_t>(config_.get_at_least("seed", 0, kDefaultSeed));
  config_.set_default("seed", static_cast<int64_t>(seed));
  seed_generators(seed, device);

  splits_ =
      std::make_unique<Splits>(config_, seed, device, world_.place().local_size, world_.size());
  networks_ = with_std_exceptions(
      "model", [&] { return std::make_unique<Networks>(config_, device, tracker_); });
  init_from_ = std::make_unique<InitFrom>(config_, *networks_);
  context_ = std::unique_ptr<Context>(new Context{.config = config_,
                                                  .device = device,
                                                  .seed = seed,
                                                  .rank = world_.rank(),
                                                  .world_size = world_.size(),
                                                  .world = world_,
                                                  .on_nan = read_on_nan(config_),
                                                  .precision = read_precision(config_),
                                                  .position = position_,
                                                  .clock = clock_,
                                                  .networks = *networks_,
                                                  .splits = *splits_,
                                                  .tracker = tracker_,
                                                  .updates = updates_,
                                                  .run = run_,
                                                  .log = log_});
  if (config_.get("distributed/sync_batch_norm", false)) sync_batch_norm_.emplace(world_, clock_);
  const MetricSchedules::Scope schedules(metric_schedules_);
  iterator_ = with_std_exceptions(
      "iterator", [&] { return iterators().build(config_, "iterator", *context_); });
  config_.claim("eval_functor");
  if (!train && config_.has("eval_functor")) {
    functor_ = with_std_exceptions("eval_functor",
                                   [&] { return iterator_of_functor(config_, *context_); });
  }
  if (train) hooks_ = make_hooks(config_, *context_);
  networks_->add_averages(config_, updates_, tracker_, train);
  track_generators(tracker_, device);
  tracker_.add(
      kTrainMeans, [this] { return train_means_.save(); },
      [this](const State& state) { train_means_.load(state); });
  tracker_.add(
      kStopWhen, [this] { return stop_when_.save(); },
      [this](const State& state) { stop_when_.load(state); });

  tracker_.add(
      kSchedules, [this] { return metric_schedules_.save(); },
      [this](const State& state) { metric_schedules_.load(state); });

  const int64_t batches = train ? splits_->order("train").batches_per_epoch() : 1;
  if (train) {
    position_.train_examples = splits_->examples("train");
    position_.order_algorithm = splits_->order("train").algorithm();
  }
  settings_ = std::make_unique<Settings>(config_, batches, train, debug, iterator_->log_ops());
  stop_when_ = StopWhen(config_, settings_->steps_per_epoch);
  if (train) freezing_ = Freezing(config_, *networks_, settings_->steps_per_epoch);
  // A default below `eval_hook: null` would turn evaluations on in a run that resumes.
  const bool has_main = std::ranges::any_of(
      settings_->evaluations, [](const auto& evaluation) { return evaluation.is_of_eval_hook(); });
  const auto callbacks = iterator().eval_callbacks();
  const auto set_callbacks = [&](const std::string& place) {
    for (const auto& [name, callback] : callbacks) {
      config_.set_default(fmt::format("{}/eval_callbacks/{}", place, name), callback);
    }
  };
  if (has_main || !train) set_callbacks("eval_hook");
  EvaluationCallbacks(config_).declare();
  for (const auto& evaluation : settings_->evaluations) {
    splits_->dataset(evaluation.op.split);
    if (evaluation.is_of_eval_hook()) continue;
    // What they look at is what the op of that name returns.
    if (evaluation.op.op == "eval_op") set_callbacks(evaluation.place);
    EvaluationCallbacks(config_, evaluation.place + "/eval_callbacks").declare();
  }
  splits_->loader_options();  // throws for what cannot be, before a run has its folder
  read_data_checksums(config_);
  check_unknown_keys(train, allow_unknown);
  made_by_ = build_info(device);
  position_.processes = world_.size();
  seed_rank(0);
  for (const auto& text : networks_->warnings()) add_warning(text);
  if (const std::string text = train ? splits_->order("train").warning() : ""; !text.empty()) {
    add_warning(text);
  }
  if (const std::string text = shared_parameters(*context_); train && !text.empty()) {
    add_warning(text);
  }
}

void Session::add_warning(const std::string& text) {
  warnings_ += (warnings_.empty() ? "" : "\n") + text;
}

void Session::check_unknown_keys(bool train, bool allow_unknown) {
  // What only the other mode reads is known as well.
  for (const char* key : {"name", "experiment_name", "drop_last", "max_batches_per_epoch",
                          "n_data_processes", "n_prefetch", "test_batch_size"}) {
    config_.has(key);
  }
  config_.claim("fixed_example_indices");
  config_.has("distributed/timeout");
  config_.has("distributed/bind");
  config_.has("distributed/shard_optimizer");
  for (const auto& split : config_.at("datasets").keys()) splits_->declare(split);
  if (!train) {
    config_.has("num_epochs");
    config_.claim("hooks");
    config_.claim("freeze");
  }
  const std::string unknown = config_.unknown_keys();
  if (unknown.empty()) return;
  if (!allow_unknown) {
    throw UsageError(unknown + "\n(--allow-unknown makes this a warning)");
  }
  add_warning(unknown);
}

std::string Session::config_yaml() const {
  return to_yaml(escape_references(*config_.root().peek()));
}

std::string Session::config_with_defaults() const {
  std::vector<TakenDefault> defaults = config_.taken_defaults();
  for (auto& [path, values] : defaults) {
    for (auto& value : values) value = escape_references(value);
  }
  return to_yaml(escape_references(*config_.root().peek()), defaults);
}

void Session::initialize() {
  with_std_exceptions("initialize", [&] { iterator().initialize(); });
  for (const auto& hook : hooks_) {
    with_std_exceptions("initialize", [&] { hook.hook->initialize(); });
  }
}

std::string Session::init_weights() { return init_from_->apply(); }

void Session::set_profile(std::shared_ptr<Profile> profile) {
  for (auto& [name, update] : updates_) update->set_profile(profile.get());
  context_->profile = std::move(profile);
}

void Session::check() {
  std::optional<NetworkCalls> calls;
  const bool wants_graph =
      train_ && std::ranges::any_of(settings_->integrations,
                                    [](const auto& sink) { return sink->wants_graph(); });
  if (wants_graph) calls.emplace(*networks_);
  const std::vector<std::string> known =
      preflight(*settings_, train_, iterator(), *context_, position_);
  if (calls) {
    graph_ = {};
    for (const auto& [network, graph, problem] : network_graphs(*context_, *calls)) {
      if (graph) add_to(graph_, network, *graph);
    }
  }
  if (!train_) return;
  const LoggedNames names{known, open_names()};
  try {
    if (!settings_->retention.metric.empty()) {
      check_is_logged(config_, "checkpoints/metric", settings_->retention.metric, names);
    }
    check_metrics(names);
  } catch (const UnknownMetric& error) {
    throw UsageError(fmt::format("{}\n  on the command line: {}", error.what(), error.argument()));
  }
}

void Session::check_metrics(const LoggedNames& names) const {
  stop_when_.check_observed(names);
  for (const auto& plateau : metric_schedules_.all()) {
    check_is_logged(config_, plateau->path() + "/metric", plateau->metric(), names);
  }
}

std::vector<std::string> Session::open_names() const {
  std::vector<std::string> names;
  for (const auto& op : settings_->log_ops) names.push_back(op.name.text());
  for (const auto& op : settings_->train_ops) names.push_back(op.name.text());
  for (const auto& evaluation : settings_->evaluations) {
    const Value* callbacks = config_.peek(evaluation.place + "/eval_callbacks");
    if (callbacks == nullptr || !callbacks->is_map()) continue;
    for (const auto& [name, callback] : callbacks->as_map()) {
      names.push_back(evaluation.prefix() + "/" + name);
    }
  }
  return names;
}

Checkpoint Session::shared_checkpoint() const {
  Checkpoint shared = checkpoint();
  const auto names = networks_->names();
  const auto must_agree = [&](std::string_view name) {
    if (name.starts_with("ema_") || name.starts_with("swa_")) name.remove_prefix(4);
    return updates_.contains(std::string(name)) || std::ranges::find(names, name) != names.end();
  };
  const bool shards = config_.get("distributed/shard_optimizer", false);
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

void Session::resume(const Checkpoint& checkpoint, const std::string& path) {
  const Progress& progress = checkpoint.progress;
  const int64_t examples = splits_->examples("train");
  if (progress.train_examples > 0 && examples > 0 && progress.train_examples != examples) {
    throw Error(fmt::format(
        "{}: taken from a training on {} examples; datasets/train now has {}. Resume with the same "
        "data, or begin anew with these weights: -r",
        path, with_thousands(progress.train_examples), with_thousands(examples)));
  }
  const int64_t batches = splits_->order("train").batches_per_epoch();
  if (progress.batch > 0 && progress.batches_per_epoch != batches) {
    throw Error(fmt::format(
        "{}: taken in the middle of an epoch of {} batches, {} of them done; an epoch now has {}. "
        "Keep batch_size, drop_last, max_batches_per_epoch and the dataset until the end of the "
        "epoch, or take a checkpoint from there with -c",
        path, progress.batches_per_epoch, progress.batch, batches));
  }
  const std::string algorithm = splits_->order("train").algorithm();
  if (progress.batch > 0 && progress.order_algorithm != algorithm) {
    const char* before = progress.order_algorithm.empty() ? "stored" : "computed";
    const char* now = algorithm.empty() ? "stored" : "computed";
    throw Error(fmt::format(
        "{}: taken in the middle of an epoch whose shuffled order was {}; it is now {}, and "
        "another one. To resume with the order that the epoch began with: --samplers/train "
        "'{{class: shuffle, order: {}}}'; or take a checkpoint from the end of an epoch with -c",
        path, before, now, before));
  }
  if (progress.batch > 0) check_order(checkpoint.config, path);
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
  static_cast<Progress&>(position_) = checkpoint.progress;
  position_.train_examples = examples;
  position_.order_algorithm = algorithm;
  if (progress.processes != world_.size()) change_processes(checkpoint);
  // Who changes the config wants more of a run that a hook has ended.
  if (!position_.stopped_by.empty() && is_changed(checkpoint.config, config_yaml())) {
    position_.stopped_by.clear();
  }
  clock_.global_step = position_.global_step;
  // Epochs may have had other numbers of steps before, with another batch_size or accumulate.
  const int64_t accumulate = settings_->accumulate;
  const int64_t left_of_epoch = (batches - position_.batch + accumulate - 1) / accumulate;
  const int64_t usual = (position_.epoch + 1) * settings_->steps_per_epoch - left_of_epoch;
  if (!config_.has("num_steps")) settings_->num_steps += position_.global_step - usual;
  if (!debug_) return;
  settings_->num_steps = position_.global_step + settings_->debug_steps;
  const int64_t in_later_epochs = std::max<int64_t>(settings_->debug_steps - left_of_epoch, 0);
  const int64_t per_epoch = settings_->steps_per_epoch;
  settings_->num_epochs = position_.epoch + 1 + (in_later_epochs + per_epoch - 1) / per_epoch;
}

/// After a resume with another number of processes: what each had for itself is nobody's now.
void Session::change_processes(const Checkpoint& checkpoint) {
  const int64_t before = checkpoint.progress.processes;
  position_.processes = world_.size();
  seed_rank(static_cast<uint64_t>(position_.global_step));
  ScalarMeans sum;
  for (int rank = 0; rank < before && world_.is_root(); ++rank) {
    State means;
    const std::string prefix = std::string(kTrainMeans) + ".";
    for (const auto& [name, tensor] : state_of_rank(checkpoint.tensors, rank)) {
      if (name.starts_with(prefix)) means[name.substr(prefix.size())] = tensor;
    }
    sum.add_other(means);
  }
  train_means_ = std::move(sum);
  add_warning(
      fmt::format("the checkpoint is of {} process{}, and now there {}: the training continues "
                  "with the same batches, equal to rounding, and not bit by bit; random numbers "
                  "that steps draw are others",
                  before, before == 1 ? "" : "es",
                  world_.size() == 1 ? "is one" : fmt::format("are {}", world_.size())));
}

/// Within an epoch, a position is one of the order that the epoch began with.
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
  static_cast<Progress&>(position_) = checkpoint.progress;
  position_.evaluation_folder.clear();
}

std::vector<std::string> Session::trained_weights() const {
  std::vector<std::string> names;
  if (context_->on_nan == OnNan::kIgnore) return names;
  std::set<const void*> trained;
  for (const auto& [name, update] : updates_) {
    for (const auto& [parameter, tensor] : update->optimizer().parameters()) {
      trained.insert(tensor.const_data_ptr());
    }
  }
  for (const auto& [name, tensor] : tracker_.save()) {
    if (tensor.numel() == 0 || !trained.contains(tensor.const_data_ptr())) continue;
    names.insert(names.end(), {name, "ema_" + name, "swa_" + name});
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
