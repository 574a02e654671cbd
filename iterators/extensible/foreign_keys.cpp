#include "iterators/extensible/foreign_keys.h"

#include <fmt/format.h>

#include <string>

#include "runtime/core/base/error.h"

namespace stepop::extensible {
namespace {

struct ForeignKey {
  const char* path;
  const char* instead;
};

constexpr ForeignKey kForeign[] = {
    {"train/niter", "num_steps, at the top of the config, says when the training ends"},
    {"train/manual_seed", "seed, at the top of the config"},
    {"train/val_freq", "eval_hook: {freq: N}, at the top of the config, with N in training steps"},
    {"train/val_freq_megasamples",
     "eval_hook: {freq: N}, at the top of the config, with N in training steps"},
    {"train/batch_size_optimizer",
     "a batch has a fixed size here: accumulate: N, at the top of the config, adds up the "
     "gradients of N batches"},
    {"train/mod_batch_factor_also_disable_checkpointing",
     "checkpoint_modules, at the top of the config, counts in every iteration: remove the key"},
    {"logger/print_freq", "log_freq, at the top of the config"},
    {"logger/save_checkpoint_freq", "ckpt_freq, at the top of the config"},
    {"automatically_scale_grads_for_fanin",
     "gradients are not scaled by the width of layers: give layers a learning rate of their own, "
     "by param_groups of optimizer_params"},
    {"automatically_scale_base_layer_size",
     "belongs to automatically_scale_grads_for_fanin, which is not there: remove the key"},
    {"experiments",
     "experiments of DL-Art-School are Python: write a hook, hooks: {name: {class: MyHook}}"},
    {"fp16", "precision: float16, or bfloat16, which needs no scaling of losses"},
    {"grad_scaler_enabled", "precision: float16 scales losses: remove the key"},
    {"checkpointing_enabled", "checkpoint_modules: [.], at the top of the config"},
    {"gpu_ids", "device: cuda:0, at the top of the config"},
    {"use_tb_logger", "integrations: {tensorboard: {active: true}}"},
    {"wandb", "integrations: {wandb: {active: true}}"},
    {"path", "init_from names weights to begin with, and -p RUN a run to resume"},
};

/// Whether the value disables a feature: false, -1, or an empty list.
bool is_switched_off(const Value& value) {
  return value == Value(false) || value == Value(int64_t{-1}) ||
         (value.is_list() && value.as_list().empty());
}

void take_ema(const Config& config) {
  const bool has_rate = config.has("train/ema_rate");
  const bool on_cpu = config.get("train/ema_on_cpu", false);
  const bool is_on =
      config.has("train/ema_enabled") ? config.get<bool>("train/ema_enabled") : has_rate || on_cpu;
  const double rate = has_rate ? config.get<double>("train/ema_rate") : 0.999;
  if (!is_on) return;
  const Value* own = config.peek("ema/decay");
  if (own != nullptr && *own != Value(rate) && (has_rate || config.has("train/ema_enabled"))) {
    throw config.error(
        has_rate ? "train/ema_rate" : "train/ema_enabled",
        fmt::format("{}, and ema/decay is {}: keep one of them", rate, own->describe()));
  }
  config.set_default("ema/decay", Value(rate));
  if (!on_cpu) return;
  const Value* place = config.peek("ema/on_cpu");
  if (place != nullptr && *place != Value(true)) {
    throw config.error("train/ema_on_cpu", "true, and ema/on_cpu is not: keep one of them");
  }
  config.set_default("ema/on_cpu", Value(true));
}

}  // namespace

void take_foreign_keys(const Config& config) {
  for (const auto& [path, instead] : kForeign) {
    const Value* found = config.peek(path);
    if (found == nullptr || !config.has(path) || is_switched_off(*found)) continue;
    throw config.error(path, fmt::format("a key of DL-Art-School; here: {}. `stepop new NAME "
                                         "--from-dlas FILE` translates a whole config",
                                         instead));
  }
  take_ema(config);
}

}  // namespace stepop::extensible
