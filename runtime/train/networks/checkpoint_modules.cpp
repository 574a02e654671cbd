#include "runtime/train/networks/checkpoint_modules.h"

#include <ATen/DeviceAccelerator.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/read_pattern.h"
#include "runtime/train/networks/second_run.h"

namespace stepop {

using checkpointing::kModulesKey;
using checkpointing::Named;
using checkpointing::named_modules;
using checkpointing::use_engine_with_hooks;

CheckpointModules::CheckpointModules(const Config& config, const std::vector<Network>& networks) {
  // LibTorch's threads of GPUs belong to the engine of the first backward pass: no other works
  // later.
  if (at::getAccelerator()) use_engine_with_hooks();
  const Value* found = config.peek(kModulesKey);
  if (found == nullptr || found->is_null() || (found->is_list() && found->as_list().empty())) {
    config.get(kModulesKey, std::vector<std::string>{});  // marks the key as read
    return;
  }
  std::vector<torch::nn::Module*> modules;
  std::vector<std::string> paths;
  std::vector<std::string> short_paths;  // without the network's name
  for (const auto& [name, network] : networks) {
    for (const auto& item : network->named_modules()) {
      if (item.key().empty()) continue;
      modules.push_back(item.value().get());
      paths.push_back(name + "." + item.key());
      short_paths.push_back(item.key());
    }
  }
  const std::vector<NamePattern> patterns = read_patterns(config, kModulesKey);
  for (size_t i = 0; i < patterns.size(); ++i) {
    const std::string place =
        found->is_list() ? fmt::format("{}/{}", kModulesKey, i) : std::string(kModulesKey);
    patterns_.push_back(config.get<std::string>(place));
    const std::vector<size_t> found_at = find_names(patterns[i], paths, short_paths);
    for (const size_t at : found_at) {
      Named& named = named_modules()[modules[at]];
      named.path = paths[at];
      if (named.of_patterns.empty()) modules_.push_back(modules[at]);
      named.of_patterns.insert(patterns_.back());
    }
    if (!found_at.empty()) continue;
    forget();
    throw config.error(place, fmt::format("\"{}\" matches no module; there are: {}",
                                          patterns_.back(), list_text(paths)));
  }
  use_engine_with_hooks();
}

CheckpointModules::~CheckpointModules() { forget(); }

void CheckpointModules::forget() const {
  for (const auto* module : modules_) named_modules().erase(module);
}

std::vector<std::string> CheckpointModules::ran() const {
  std::vector<std::string> paths;
  for (const auto* module : modules_) {
    const Named& named = named_modules().at(module);
    if (named.ran) paths.push_back(named.path);
  }
  return paths;
}

std::string CheckpointModules::warning() const {
  std::set<std::string> ran;
  for (const auto* module : modules_) {
    const Named& named = named_modules().at(module);
    if (named.ran) ran.insert(named.of_patterns.begin(), named.of_patterns.end());
  }
  std::vector<std::string> missing;
  std::ranges::copy_if(patterns_, std::back_inserter(missing),
                       [&](const auto& pattern) { return !ran.contains(pattern); });
  if (missing.empty()) return {};
  return fmt::format(
      "{}: no module that {} names was run again so far: a network calls its blocks by "
      "checkpointed(*block, x), of runtime/train/networks/checkpoint_modules.h, or nothing is "
      "saved",
      kModulesKey, list_text(missing));
}

}  // namespace stepop
