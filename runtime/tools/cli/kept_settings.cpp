#include "runtime/tools/cli/kept_settings.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <filesystem>
#include <map>
#include <string_view>

#include "runtime/core/config/yaml_reader.h"
#include "runtime/core/config/yaml_writer.h"
#include "runtime/core/system/cache_folder.h"
#include "runtime/core/system/checksum.h"
#include "runtime/train/run/machine.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace {

constexpr const char* kTunedKeys[] = {"num_threads",      "onednn",     "channels_last",
                                      "n_data_processes", "n_prefetch", "flush_denormals",
                                      "thread_wait",      "processes",  "precision"};

constexpr const char* kOtherKeys[] = {"name",
                                      "experiment_name",
                                      "seed",
                                      "num_epochs",
                                      "num_steps",
                                      "max_time",
                                      "stop_at",
                                      "log_ops",
                                      "log_freq",
                                      "start_log_freq",
                                      "log_images",
                                      "ckpt_freq",
                                      "ckpt_zero",
                                      "checkpoints",
                                      "integrations",
                                      "telemetry",
                                      "eval_hook",
                                      "eval_pipeline",
                                      "evaluations",
                                      "eval_all",
                                      "eval_filter",
                                      "eval_forever",
                                      "eval_functor",
                                      "run_ahead",
                                      "data_checksums",
                                      "extra",
                                      "debug",
                                      "test_batch_size",
                                      "init_from",
                                      "stop_when",
                                      "fixed_example_indices"};

bool is_learning_rate(const std::string& key) { return key == "lr" || key == "weight_decay"; }

Value without_rates(const Value& value) {
  if (!value.is_map()) return value;
  Value::Map kept;
  for (const auto& [key, item] : value.as_map()) {
    if (!is_learning_rate(key)) kept.set(key, without_rates(item));
  }
  return kept;
}

}  // namespace

std::string machine_text() {
  std::string text;
  for (const auto& [name, value] : machine_facts()) {
    if (name == "kernel") continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  }
  return text;
}

std::string kept_settings_file(const Value& config) {
  std::map<std::string, Value> keys;  // sorted, whatever their order in the config
  for (const auto& [key, value] : config.as_map()) keys[key] = without_rates(value);
  for (const char* key : kTunedKeys) {
    if (std::string_view(key) != "precision") keys.erase(key);  // precision changes the results
  }
  for (const char* key : kOtherKeys) keys.erase(key);
  Value::Map root;
  for (const auto& [key, value] : keys) root.set(key, value);
  const std::string text =
      fmt::format("{}{}\n{}\n{}", to_yaml(root), machine_text(), stepop_time(), TORCH_VERSION);
  return fmt::format("{}/tuned/{}.yaml", cache_folder("settings of stepop tune"),
                     content_checksum(text));
}

std::span<const char* const> keys_that_cost_nothing() { return kOtherKeys; }

std::optional<OrderedMap<Value>> read_tuned(const std::string& file) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return std::nullopt;
  const Value root = read_yaml_file(file);
  OrderedMap<Value> settings;
  for (const char* key : kTunedKeys) {
    if (const Value* value = root.find(key)) settings.set(key, *value);
  }
  return settings;
}

}  // namespace stepop
