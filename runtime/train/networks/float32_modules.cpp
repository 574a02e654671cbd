#include "runtime/train/networks/float32_modules.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <unordered_map>

#include "runtime/core/base/text.h"

namespace stepop {
namespace {

constexpr const char* kFloat32Key = "float32_modules";

struct InFloat32 {
  c10::Device device;
  bool ran = false;
};

/// A module itself has no room for a mark.
std::unordered_map<const torch::nn::Module*, InFloat32>& marked_modules() {
  static std::unordered_map<const torch::nn::Module*, InFloat32> modules;
  return modules;
}

}  // namespace

Float32Modules::Float32Modules(const Config& config, const c10::Device& device,
                               const std::vector<ModulePattern::Network>& networks)
    : patterns_(read_module_patterns(config, kFloat32Key, networks)) {
  for (const ModulePattern& pattern : patterns_) {
    for (const auto& [path, module] : pattern.modules) marked_modules().emplace(module, device);
  }
}

Float32Modules::~Float32Modules() {
  for (const ModulePattern& pattern : patterns_) {
    for (const auto& [path, module] : pattern.modules) marked_modules().erase(module);
  }
}

std::string Float32Modules::warning() const {
  std::vector<std::string> missing;
  for (const ModulePattern& pattern : patterns_) {
    const bool ran = std::ranges::any_of(
        pattern.modules, [](const auto& module) { return marked_modules().at(module.second).ran; });
    if (!ran) missing.push_back(pattern.text);
  }
  if (missing.empty()) return {};
  return fmt::format(
      "{}: no module that {} names ran in float32 by this key so far: a network calls its blocks "
      "by checkpointed(*block, x), of runtime/train/networks/checkpoint_modules.h",
      kFloat32Key, list_text(missing));
}

std::optional<c10::Device> float32_device(const torch::nn::Module& module) {
  auto& marked = marked_modules();
  if (marked.empty()) return std::nullopt;
  const auto found = marked.find(&module);
  if (found == marked.end()) return std::nullopt;
  found->second.ran = true;
  const c10::Device device = found->second.device;
  if (!at::autocast::is_autocast_enabled(device.type())) return std::nullopt;
  return device;
}

at::Tensor in_float32(const at::Tensor& tensor) {
  const bool is_short = tensor.defined() && at::isReducedFloatingType(tensor.scalar_type());
  return is_short ? tensor.to(at::kFloat) : tensor;
}

}  // namespace stepop
