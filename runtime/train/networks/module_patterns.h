#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace stepop {

class Config;

/// A pattern of a config, and the modules below networks that it names.
struct ModulePattern {
  using Network = std::pair<std::string, std::shared_ptr<torch::nn::Module>>;

  std::string text;
  std::vector<std::pair<std::string, torch::nn::Module*>> modules;  ///< By path: `model.decoder.0`.
};

/// Reads the regular expression or list of them at `key`, each for any part of a module's path; the
/// network's name at the path's begin may be left out. Empty without the key. Throws Error for a
/// pattern that matches no module.
std::vector<ModulePattern> read_module_patterns(
    const Config& config, const char* key, const std::vector<ModulePattern::Network>& networks);

}  // namespace stepop
