#include "runtime/tools/tune/measured_training.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/core/config/resolve.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/tune/answers.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/loop/reporter.h"
#include "runtime/train/loop/session.h"
#include "runtime/train/loop/training_loop.h"
#include "runtime/train/run/device.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/thread_wait.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

/// Steps and epochs that no measurement comes to.
constexpr int64_t kNever = 1'000'000'000'000;

nlohmann::json settings_json(const Session& session) {
  const Context& context = session.context();
  const LoaderOptions loader = context.splits.loader_options();
  bool has_images = false;
  for (const auto& network : context.networks.names()) {
    for (const auto& [name, tensor] : context.networks.tensors(network)) {
      has_images = has_images || tensor.dim() == 4;
    }
  }
  return {{"is_cpu", context.device.is_cpu()},
          {"device", describe_device(context.device)},
          {"threads", at::get_num_threads()},
          {"onednn", at::globalContext().userEnabledMkldnn()},
          {"can_use_onednn", at::hasMKLDNN()},
          {"channels_last", loader.channels_last},
          {"has_images", has_images},
          {"workers", loader.workers},
          {"prefetch", loader.prefetch},
          {"flushes_denormals", session.config().get("flush_denormals", false)},
          {"thread_wait", own_thread_wait()},
          {"precision", session.config().get("precision", "float32")},
          {"batch_size", context.splits.order("train").batch_size()},
          {"examples", context.splits.examples("train")},
          {"processes", context.world_size},
          {"cores", std::max(1U, std::thread::hardware_concurrency())}};
}

/// The most memory that this process had, and its device for it, in bytes.
double most_memory(const c10::Device& device) {
  if (device.is_cpu()) {
    const std::string status = read_file("/proc/self/status");
    const size_t at = status.find("VmHWM:");
    return at == std::string::npos ? 0 : 1024 * std::atof(status.c_str() + at + 6);
  }
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  const auto whole = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<double>(stats.reserved_bytes[whole].peak);
}

/// Lets steps pass in portions, as they are asked for.
class Gate : public StepHook {
 public:
  Gate(Session& session, int answers) : StepHook(session), answers_(answers) {}

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
      const nlohmann::json portion = {{"seconds", passed.count() / static_cast<double>(steps_)},
                                      {"memory", most_memory(session().context().device)}};
      answer(answers_, portion.dump());
    }
    long long before = 0;
    long long steps = 0;
    if (std::scanf(" run %lld %lld", &before, &steps) != 2 || steps < 1) ::_exit(0);
    before_ = before;
    steps_ = left_ = steps;
    session().restart_spin_watch();
  }

  int answers_;
  int64_t before_ = 0;  ///< Steps that are not measured, and are still to come.
  int64_t left_ = 0;    ///< The same of those that are.
  int64_t steps_ = 0;   ///< Of the portion at hand.
  Clock::time_point begin_;
};

}  // namespace

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

void train_for_steps(const Config& config, World& world, const std::string& folder,
                     const std::string& weights, const MakeStepHook& make_hook) {
  Value root = *config.root().peek();
  const auto make = [&](const Config& of) {
    return std::make_unique<Session>(of, /*train=*/true, /*debug=*/false, /*allow_unknown=*/false,
                                     &world);
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

void run_measured_training(const Config& config, World& world, const std::string& folder,
                           int answers) {
  train_for_steps(config, world, folder, "", [&](Session& session) {
    answer(answers, settings_json(session).dump());
    return std::make_unique<Gate>(session, answers);
  });
}

}  // namespace stepop
