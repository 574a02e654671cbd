#include "runtime/tools/start/kept_settings.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <filesystem>
#include <map>

#include "runtime/core/system/cache_folder.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/run/machine.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace {

bool is_learning_rate(const std::string& key) {
  return key == "lr" || key == "adamw_lr" || key == "weight_decay";
}

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
  for (const auto& key : top_keys_with(kTuned)) {
    if (key != "precision") keys.erase(key);  // precision changes the results
  }
  for (const auto& key : top_keys_with(kSameCost)) keys.erase(key);
  Value::Map root;
  for (const auto& [key, value] : keys) root.set(key, value);
  const std::string text =
      fmt::format("{}{}\n{}\n{}", to_yaml(root), machine_text(), stepop_time(), TORCH_VERSION);
  return fmt::format("{}/tuned/{}.yaml", cache_folder("settings of stepop tune"),
                     content_checksum(text));
}

std::optional<OrderedMap<Value>> read_tuned(const std::string& file) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return std::nullopt;
  const Value root = read_yaml_file(file);
  OrderedMap<Value> settings;
  for (const auto& key : top_keys_with(kTuned)) {
    if (const Value* value = root.find(key)) settings.set(key, *value);
  }
  return settings;
}

}  // namespace stepop
