#include "runtime/train/networks/module_patterns.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include "runtime/core/base/text.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/read_pattern.h"

namespace stepop {

std::vector<ModulePattern> read_module_patterns(
    const Config& config, const char* key, const std::vector<ModulePattern::Network>& networks) {
  const Value* found = config.peek(key);
  if (found == nullptr || found->is_null() || (found->is_list() && found->as_list().empty())) {
    config.get(key, std::vector<std::string>{});  // marks the key as read
    return {};
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
  std::vector<ModulePattern> result;
  for (const NamePattern& pattern : read_patterns(config, key)) {
    const std::string place =
        found->is_list() ? fmt::format("{}/{}", key, result.size()) : std::string(key);
    ModulePattern& matched = result.emplace_back();
    matched.text = config.get<std::string>(place);
    for (const size_t at : find_names(pattern, paths, short_paths)) {
      matched.modules.emplace_back(paths[at], modules[at]);
    }
    if (!matched.modules.empty()) continue;
    throw config.error(place, fmt::format("\"{}\" matches no module; there are: {}", matched.text,
                                          list_text(paths)));
  }
  return result;
}

}  // namespace stepop
