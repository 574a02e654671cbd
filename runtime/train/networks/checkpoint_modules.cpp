#include "runtime/train/networks/checkpoint_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "runtime/core/base/text.h"
#include "runtime/train/networks/second_run.h"

namespace stepop {

using checkpointing::kModulesKey;
using checkpointing::Named;
using checkpointing::named_modules;
using checkpointing::use_engine_with_hooks;

CheckpointModules::CheckpointModules(const Config& config,
                                     const std::vector<ModulePattern::Network>& networks) {
  for (const ModulePattern& pattern : read_module_patterns(config, kModulesKey, networks)) {
    patterns_.push_back(pattern.text);
    for (const auto& [path, module] : pattern.modules) {
      Named& named = named_modules()[module];
      named.path = path;
      if (named.of_patterns.empty()) modules_.push_back(module);
      named.of_patterns.insert(pattern.text);
    }
  }
  if (!empty()) use_engine_with_hooks();
}

CheckpointModules::~CheckpointModules() {
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
