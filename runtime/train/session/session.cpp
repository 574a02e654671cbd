#include "runtime/train/session/session.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "eval_out/callbacks/callback.h"
#include "eval_out/callbacks/evaluation_callbacks.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/config/references.h"
#include "runtime/core/value/taken_default.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/checks/parameter_ownership.h"
#include "runtime/train/checks/plan_warnings.h"
#include "runtime/train/checks/preflight.h"
#include "runtime/train/iterator/eval_functor.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/optim/update.h"
#include "runtime/train/run/data_files.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/provenance.h"
#include "runtime/train/run/thread_wait.h"
#include "runtime/train/session/telemetry.h"
#include "runtime/train/step/uncaptured.h"
#include "runtime/train/when/logged_metric.h"

namespace stepop {
namespace {

/// Reserved for the best value of the early stopping metric.
constexpr const char* kStopWhen = "stop_when";
/// Reserved for the schedules that follow a metric.
constexpr const char* kSchedules = "schedules";

void track_generators(Tracker& tracker, const c10::Device& device) {
  tracker.add(
      kRandomState, [device] { return GeneratorCopies(device).state(); },
      [device](const State& state) {
        const auto cpu = state.find("cpu");
        if (cpu == state.end())
          throw Error(std::string("random.cpu: missing from the checkpoint. ") + kHowToFit);
        set_generator_state(c10::kCPU, cpu->second);
        const auto cuda = state.find("cuda");
        if (!device.is_cpu() && cuda != state.end()) set_generator_state(device, cuda->second);
      });
}

/// Throws UsageError for `fixed_example_indices` that cannot be, also where no op asks for them.
void check_fixed_examples(const Config& config, const Settings& settings, Splits& splits) {
  constexpr const char* kKey = "fixed_example_indices";
  if (!config.has(kKey)) return;
  if (!config.peek(kKey)->is_map()) {
    throw config.error(kKey, "expected a map of splits, such as {validation: [0, 1, 2]}, found " +
                                 config.peek(kKey)->describe());
  }
  const std::vector<DueOps> used = due_ops(settings, /*train=*/true);
  for (const auto& split : config.at(kKey).keys()) {
    const std::string path = join_path(kKey, split);
    if (!config.has(path)) continue;
    if (!config.has("datasets/" + split)) {
      throw config.error(path, fmt::format("there is no datasets/{}; there are: {}", split,
                                           fmt::join(config.at("datasets").keys(), ", ")));
    }
    const auto indices = config.get<std::vector<int64_t>>(path);
    if (indices.empty()) throw config.error(path, "expected at least one index");
    const bool is_used =
        std::ranges::any_of(used, [&](const auto& due) { return due.split == split; });
    const int64_t size = is_used ? splits.examples(split) : 0;  // 0: not known
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] >= 0 && (indices[i] < size || size == 0)) continue;
      throw config.error(fmt::format("{}/{}", path, i),
                         indices[i] < 0
                             ? fmt::format("expected 0 or more, found {}", indices[i])
                             : fmt::format("no example {}: the dataset has {}", indices[i], size));
    }
  }
}

}  // namespace

Session::Session(const Config& config, bool train, bool debug, bool allow_unknown, World* world)
    : config_(config),
      alone_(world == nullptr ? std::make_unique<World>() : nullptr),
      world_(world == nullptr ? *alone_ : *world),
      train_(train),
      debug_(debug),
      allow_unknown_(allow_unknown) {
  const c10::Device device = open_machine();
  const auto seed = static_cast<uint64_t>(own_key<int64_t>(config_, "seed"));
  config_.set_default("seed", static_cast<int64_t>(seed));
  seed_generators(seed, device);
  open_data(seed, device);
  build_networks(device);
  build_context(seed, device);
  // What is built from here on joins the collections that are open.
  const SyncBatchNorm::Scope sync(context_->sync_batch_norm);
  const MetricSchedules::Scope schedules(metric_schedules_);
  const ScheduleCollector collector(schedules_);
  const LengthScope lengths([this] { return length(); });
  build_iterator();
  track_state();
  read_plan(lengths);
  declare_callbacks();
  splits_->loader_options();  // throws for bad options, before a run has its folder
  read_data_checksums(config_);
  check_unknown_keys(train);
  made_by_ = build_info(device);
  position_.processes = world_.size();
  seed_rank(0);
  check_plan();
}

c10::Device Session::open_machine() {
  const c10::Device device = read_device(config_, world_.place().local_rank);
  apply_backend_settings(config_, world_.place().local_size);
  if (config_.has("distributed/backend")) {
    const auto name = config_.get<std::string>("distributed/backend");
    const std::string problem = world_.use_backend(name, device);
    if (!problem.empty()) throw config_.error("distributed/backend", problem);
  }
  const int threads = at::get_num_threads();
  if (threads > 1 && own_thread_wait() == "auto") spin_watch_.emplace(threads);
  return device;
}

void Session::open_data(uint64_t seed, const c10::Device& device) {
  splits_ =
      std::make_unique<Splits>(config_, seed, device, world_.place().local_size, world_.size());
}

void Session::build_networks(const c10::Device& device) {
  networks_ = with_std_exceptions(
      "model", [&] { return std::make_unique<Networks>(config_, device, tracker_); });
  init_from_ = std::make_unique<InitFrom>(config_, *networks_);
}

void Session::build_context(uint64_t seed, const c10::Device& device) {
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
  if (own_key<bool>(config_, "distributed/sync_batch_norm")) {
    context_->sync_batch_norm = &sync_batch_norm_.emplace(world_, clock_);
  }
}

void Session::build_iterator() {
  const bool has_functor = !train_ && config_.has("eval_functor");
  if (!has_functor || config_.has("iterator")) {  // a file's network has no iterator
    iterator_ = with_std_exceptions(
        "iterator", [&] { return iterators().build(config_, "iterator", *context_); });
  }
  if (train_) declare_component(eval_functors(), config_, "eval_functor");
  if (has_functor) {
    functor_ = with_std_exceptions("eval_functor",
                                   [&] { return iterator_of_functor(config_, *context_); });
  }
  if (train_) hooks_ = make_hooks(config_, *context_);
}

void Session::track_state() {
  networks_->add_averages(config_, updates_, tracker_, train_);
  track_generators(tracker_, context_->device);
  const auto track = [&](const char* name, auto& object) {
    tracker_.add(
        name, [&object] { return object.save(); },
        [&object](const State& state) { object.load(state); });
  };
  track(kTrainMeans, train_means_);
  track(kStopWhen, stop_when_);
  track(kSchedules, metric_schedules_);
}

void Session::read_plan(const LengthScope& lengths) {
  const int64_t batches = train_ ? splits_->order("train").batches_per_epoch() : 1;
  if (train_) {
    position_.train_examples = splits_->examples("train");
    position_.order_algorithm = splits_->order("train").algorithm();
  }
  settings_ =
      std::make_unique<Settings>(config_, batches, train_, debug_,
                                 (iterator_ ? *iterator_ : *functor_).log_ops(), world_.size());
  read_times(hooks_, config_, settings_->steps_per_epoch);
  stop_when_ = StopWhen(config_, settings_->steps_per_epoch);
  if (train_) freezing_ = Freezing(config_, *networks_, settings_->steps_per_epoch);
  if (const auto& used = lengths.used(); train_ && used) {
    position_.planned_steps = used->num_steps;
    position_.planned_steps_per_epoch = used->steps_per_epoch;
  }
}

void Session::declare_callbacks() {
  const auto set_callbacks = [&](const std::string& place) {
    EvaluationCallbacks(config_, place + "/eval_callbacks");  // throws for what is no map
    for (const auto& [name, callback] : iterator().eval_callbacks()) {
      config_.set_default(
          fmt::format("{}/eval_callbacks/{}", place, name),
          callback.starts_with('{') ? parse_yaml(callback, {"eval_callbacks", 0}) : callback);
    }
  };
  // A default below `eval_hook: null` would turn evaluations on in a resumed run.
  const bool has_main = std::ranges::any_of(
      settings_->evaluations, [](const auto& evaluation) { return evaluation.is_of_eval_hook(); });
  if (has_main || !train_) set_callbacks("eval_hook");
  EvaluationCallbacks(config_).declare();
  for (const auto& evaluation : settings_->evaluations) {
    splits_->dataset(evaluation.op.split);
    if (evaluation.is_of_eval_hook()) continue;
    // The callbacks look at outputs of the op with that name.
    if (evaluation.op.op == "eval_op") set_callbacks(evaluation.place);
    EvaluationCallbacks(config_, evaluation.place + "/eval_callbacks").declare();
  }
}

void Session::check_plan() {
  for (const auto& text : networks_->warnings()) add_warning(text);
  for (const char* other : {"val", "valid", "dev", "eval"}) {
    const std::string key = std::string("datasets/") + other;
    if (config_.peek(key) == nullptr || config_.peek("datasets/validation") != nullptr) continue;
    add_warning(config_
                    .error(key,
                           "nothing uses it by itself: the data of evaluations are "
                           "datasets/validation")
                    .what());
  }
  if (!train_) return;
  for (const auto& text : {splits_->order("train").warning(), shared_parameters(*context_)}) {
    if (!text.empty()) add_warning(text);
  }
  if (own_key<bool>(config_, "cuda_graph")) check_captures(*context_);
  counted_parameters(*context_, settings_->telemetry);  // throws when there are none
  if (debug_) return;                                   // a debug run ends early
  for (const auto& text :
       plan_warnings(*settings_, *context_, freezing_.begins(), schedules_, metric_schedules_)) {
    add_warning(text);
  }
}

Session::~Session() = default;

void Session::add_warning(const std::string& text) {
  warnings_ += (warnings_.empty() ? "" : "\n") + text;
}

void Session::add_notice(const std::string& text) {
  notices_ += (notices_.empty() ? "" : "\n") + text;
}

void Session::check_unknown_keys(bool train) {
  declare_own_keys(config_);  // also those that the other mode reads
  if (train) {
    check_fixed_examples(config_, *settings_, *splits_);
  } else {
    config_.claim("fixed_example_indices");
    config_.claim("class_names");  // what is predicted may have no classes
  }
  for (const auto& split : config_.at("datasets").keys()) splits_->declare(split);
  if (!train) declare_hooks(config_);
  if (!train && config_.has("eval_functor")) {  // which replaces all other evaluations
    for (const auto& name : config_.at("evaluations").keys()) {
      config_.claim(fmt::format("evaluations/{}/eval_callbacks", name));
    }
  }
  for (const auto& text : idle_keys(config_, train)) add_warning(text);
  const std::string unknown = config_.unknown_keys();
  if (unknown.empty()) return;
  if (!allow_unknown_) {
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

TrainingLength Session::length() const {
  const int64_t batches = train_ ? splits_->order("train").batches_per_epoch() : 1;
  return read_training_length(config_, batches, train_, world_.size());
}

void Session::initialize() {
  const SyncBatchNorm::Scope sync(context_->sync_batch_norm);
  const LengthScope lengths([this] { return length(); });
  with_std_exceptions("initialize", [&] { iterator().initialize(); });
  for (const auto& hook : hooks_) {
    with_std_exceptions("initialize", [&] { hook.hook->initialize(); });
  }
}

std::string Session::init_weights() {
  if (train_ && !world_.is_alone() && init_from_->takes_optimizers()) {
    throw config_.error("init_from",
                        "optimizer: true: the state of an optimizer is loaded by a single process; "
                        "train a step with one, then resume with several");
  }
  return init_from_->apply(train_ ? &updates_ : nullptr);
}

void Session::restart_spin_watch() {
  if (spin_watch_) spin_watch_.emplace(at::get_num_threads());
}

void Session::set_profile(std::shared_ptr<Profile> profile) {
  for (auto& [name, update] : updates_) update->set_profile(profile.get());
  context_->profile = std::move(profile);
}

void Session::check(const DrawGraph& draw_graph, const std::string& ranked_by) {
  if (train_) {
    freezing_.check_some_trained(config_, updates_, position_.global_step, settings_->num_steps);
  }
  std::optional<NetworkCalls> calls;
  const bool wants_graph =
      train_ && draw_graph && std::ranges::any_of(settings_->integrations, [](const auto& sink) {
        return sink->wants_graph();
      });
  if (wants_graph) calls.emplace(*networks_);
  const std::vector<ScheduledOp> log_ops = settings_->log_ops;
  notices_.clear();
  const Findings found = preflight(*settings_, train_, iterator(), *context_, position_);
  if (train_) note_log_ops(log_ops);
  if (calls) graph_ = draw_graph(*context_, *calls);
  for (const auto& text : found.warnings) add_warning(text);
  if (!train_) return;
  choose_onednn(found.convolutions);
  try {
    check_metrics({.known = found.names, .open = open_names()}, found.evaluated, ranked_by);
  } catch (const UnknownMetric& error) {
    const std::string argument =
        error.argument().empty() ? "" : "\n  on the command line: " + error.argument();
    if (!allow_unknown_) throw UsageError(error.what() + argument);
    add_warning(error.what());
  }
}

/// The choice of `onednn: auto`, the same in all processes. A run's config keeps `false`, which may
/// come to batches for which nobody chose it.
void Session::choose_onednn(const ConvolutionCount& convolutions) {
  if (!at::globalContext().userEnabledMkldnn() && convolutions.is_slow_without_onednn()) {
    add_notice(fmt::format(
        "onednn: false, with which convolutions of {} examples at a time are up to three times "
        "slower here: --onednn auto chooses anew",
        convolutions.most_examples));
  }
  if (is_onednn_chosen_ || read_onednn(config_) || !context_->device.is_cpu()) return;
  is_onednn_chosen_ = true;
  const bool is_small = at::hasMKL() && !own_key<bool>(config_, "channels_last") &&
                        convolutions.is_small(at::get_num_threads());
  if (world_.max({is_small ? 0.0 : 1.0}).front() > 0) return;
  config_.set_default("onednn", false);
  at::globalContext().setUserEnabledMkldnn(false);
  made_by_ = build_info(context_->device);
  add_notice(fmt::format(
      "onednn: false, as small convolutions are faster without it: here {} multiplications on "
      "average; the run keeps it",
      with_thousands(std::llround(convolutions.mean()))));
}

void Session::note_log_ops(const std::vector<ScheduledOp>& asked) {
  constexpr const char* kStill = "what train ops return, rates and speed are logged";
  if (config_.has("log_ops")) {
    const bool is_empty = config_.peek("log_ops")->as_list().empty();
    if (is_empty) add_notice(fmt::format("log_ops: []: no log op runs; {}", kStill));
    return;
  }
  std::vector<std::string> missing;
  for (const auto& op : asked) {
    const bool is_left = std::ranges::any_of(settings_->log_ops, [&](const ScheduledOp& other) {
      return other.name.text() == op.name.text();
    });
    if (!is_left) missing.push_back(op.name.text());
  }
  if (missing.empty()) return;
  add_notice(fmt::format("step_op returns no {}; {}", fmt::join(missing, ", "), kStill));
}

}  // namespace stepop
