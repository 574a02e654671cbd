#include "runtime/tools/tune/measured_training.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "runtime/core/config/resolve.h"
#include "runtime/core/measure/device_memory.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/loop/reporter.h"
#include "runtime/train/loop/training_loop.h"
#include "runtime/train/networks/network_alternatives.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/thread_wait.h"
#include "runtime/train/session/session.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

/// No measurement has so many steps.
constexpr int64_t kNever = 1'000'000'000'000;

/// The networks of the config with what computes them in another way, one key at the root for each.
Value::Map other_networks(const Session& session) {
  const Networks& networks = session.context().networks;
  Value::Map others;
  for (const auto& name : networks.names()) {
    const auto* network = dynamic_cast<const NetworkAlternatives*>(networks.get(name).get());
    const std::string key = session.config().has("model") ? "model" : "networks";
    const Value* found = session.config().peek(key);
    if (network == nullptr || found == nullptr || !found->is_map()) continue;
    Value all = others.contains(key) ? *others.find(key) : *found;
    Value* own = key == "model" ? &all : all.as_map().find(name);
    if (own == nullptr || !own->is_map()) continue;
    const OrderedMap<Value> alternatives = network->alternatives();
    for (const auto& [parameter, value] : alternatives) own->as_map().set(parameter, value);
    if (!alternatives.empty()) others.set(key, std::move(all));
  }
  return others;
}

/// What PresentSettings and TrainingSubject read.
std::string report(const Session& session) {
  const Context& context = session.context();
  const LoaderOptions loader = context.splits.loader_options();
  bool has_images = false;
  for (const auto& network : context.networks.names()) {
    for (const auto& [name, tensor] : context.networks.tensors(network)) {
      has_images = has_images || tensor.dim() == 4;
    }
  }
  Value::Map settings{{"num_threads", int64_t{at::get_num_threads()}},
                      {"onednn", at::globalContext().userEnabledMkldnn()},
                      {"channels_last", loader.channels_last},
                      {"n_data_processes", int64_t{loader.workers}},
                      {"n_prefetch", int64_t{loader.prefetch}},
                      {"flush_denormals", session.config().get("flush_denormals", false)}};
  if (!context.device.is_cpu()) {
    for (const char* key : {"cuda_graph", "cudnn_benchmark"}) {
      settings.set(key, session.config().get(key, false));
    }
  }
  if (const std::string wait = own_thread_wait(); !wait.empty()) settings.set("thread_wait", wait);
  settings.set("processes", int64_t{context.world_size});
  return flow_yaml(Value::Map{{"settings", std::move(settings)},
                              {"precision", session.config().get("precision", "float32")},
                              {"is_cpu", context.device.is_cpu()},
                              {"has_images", has_images},
                              {"can_use_onednn", at::hasMKLDNN()},
                              {"networks", other_networks(session)},
                              {"cores", usable_processors()},
                              {"device", describe_device(context.device)},
                              {"batch_size", int64_t{context.splits.order("train").batch_size()}},
                              {"examples", int64_t{context.splits.examples("train")}}});
}

/// The most bytes that this process had, on its device.
double most_memory(const c10::Device& device) {
  if (device.is_cpu()) {
    const std::string status = read_file("/proc/self/status");
    const size_t at = status.find("VmHWM:");
    return at == std::string::npos ? 0 : 1024 * std::atof(status.c_str() + at + 6);
  }
  const auto memory = device_memory(device);
  return memory ? memory->most_taken : 0;
}

/// Lets steps pass in the portions that the standard input asks for.
class Gate : public StepHook {
 public:
  using StepHook::StepHook;

  void before_step(int64_t) override {
    if (before_ == 0 && left_ == 0) wait_for_more();
    if (before_ > 0) {
      --before_;
      return;
    }
    if (left_ == steps_) begin();
    --left_;
  }

 private:
  void begin() {
    synchronize(session().context().device);
    begin_ = Clock::now();
  }

  void wait_for_more() {
    if (steps_ > 0) {
      synchronize(session().context().device);
      const std::chrono::duration<double> passed = Clock::now() - begin_;
      answer(fmt::format("{} {}", passed.count() / static_cast<double>(steps_),
                         most_memory(session().context().device)));
    }
    long long before = 0;
    long long steps = 0;
    if (std::scanf(" run %lld %lld", &before, &steps) != 2 || steps < 1) ::_exit(0);
    before_ = before;
    steps_ = left_ = steps;
    session().restart_spin_watch();
  }

  int64_t before_ = 0;  ///< Steps to come that are not measured.
  int64_t left_ = 0;    ///< Steps to come that are measured.
  int64_t steps_ = 0;   ///< All measured steps of this portion.
  Clock::time_point begin_;
};

/// What `onednn: auto` is in the whole training, whose check also runs log and eval ops.
bool chosen_onednn(const Config& config, bool allow_unknown, World& world,
                   const std::string& folder) {
  Console console(LogLevel::kCritical);
  Session session(Config(*config.root().peek()), /*train=*/true, /*debug=*/false, allow_unknown,
                  &world);
  session.set_run({folder, "tune", false});
  session.show_log(console);
  session.initialize();
  session.check();
  return at::globalContext().userEnabledMkldnn();
}

}  // namespace

void answer(const std::string& line) {
  static const OpenFile answers(STDIN_FILENO);
  size_t written = 0;
  if (write_all(answers, line + "\n", written) != 0) ::_exit(1);
}

Value config_of_steps(Value config) {
  Value::Map& keys = config.as_map();
  for (const auto& key : top_keys_with(kNotInSteps)) keys.erase(key);
  keys.set("num_steps", kNever);
  keys.set("eval_hook", Value());
  keys.set("log_ops", Value::List{});
  keys.set("log_freq", kNever);
  keys.set("start_log_freq", kNever);
  keys.set("telemetry", Value::Map{{"active", Value(false)}});
  return config;
}

StepHook::StepHook(Session& session)
    : session_(session),
      batches_per_epoch_(session.context().splits.order("train").batches_per_epoch()) {}

void StepHook::after_step(int64_t) {
  Position& position = session_.position();
  if (position.batch < batches_per_epoch_) return;
  position.batch = 0;
  ++position.epoch;
}

void train_for_steps(const Config& config, bool allow_unknown, World& world,
                     const std::string& folder, const std::string& weights,
                     const MakeStepHook& make_hook) {
  Value root = *config.root().peek();
  const auto make = [&](const Config& of) {
    return std::make_unique<Session>(of, /*train=*/true, /*debug=*/false, allow_unknown, &world);
  };
  std::unique_ptr<Session> session = make(config);
  if (const auto own = session->iterator().log_ops(); !own.empty()) {
    session.reset();
    std::vector<Override> overrides;
    for (const auto& [name, path] : own) overrides.push_back({path, Value(kNever)});
    apply_overrides(root, std::move(overrides));
    session = make(Config(std::move(root)));
  }
  const auto directory = RunDirectory::at(folder);
  session->set_run({folder, "tune", false});
  if (!weights.empty()) {
    session->restore_weights(load_checkpoint(weights), weights);
  } else if (world.is_root()) {
    session->init_weights();
  }
  session->share_beginning();
  session->initialize();
  Console console(LogLevel::kCritical);
  session->show_log(console);
  Reporter reporter(console, directory, session->settings(),
                    session->context().splits.order("train").batches_per_epoch(),
                    /*writes=*/false);
  TrainingLoop loop(*session, directory, reporter, {.time = "tune", .git = "none"});
  const std::unique_ptr<StepHook> hook = make_hook(*session);
  loop.add_hook(*hook, "tune");
  loop.run();
  throw Error("a training without an end has ended: a hook, or the iterator, stopped it");
}

void run_measured_training(const Config& config, bool allow_unknown, World& world,
                           const std::string& folder) {
  Value root = *config.root().peek();
  if (!read_onednn(config))
    root.as_map().set("onednn", chosen_onednn(config, allow_unknown, world, folder));
  const Config of_steps(config_of_steps(std::move(root)));
  train_for_steps(of_steps, allow_unknown, world, folder, "", [](Session& session) {
    answer(report(session));
    return std::make_unique<Gate>(session);
  });
}

}  // namespace stepop
