#include "runtime/train/checks/update_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/float32_modules.h"
#include "runtime/train/networks/networks.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// The parameters that require a gradient and that no update changed so far; at rank 0 also the
/// parameters that only another process updates.
std::vector<std::string> untouched(World& world, const Update& update) {
  const State state = update.optimizer().state();
  nlohmann::json own = nlohmann::json::array();
  for (const auto& [name, tensor] : update.optimizer().parameters()) {
    const auto step = state.find(name + ".step");
    if (tensor.requires_grad() && step != state.end() && step->second.item<float>() == 0) {
      own.push_back(name);
    }
  }
  std::set<std::string> found(own.begin(), own.end());
  for (const std::string& part : world.gather_bytes_at_root(write_json(own))) {
    for (const auto& name : read_json(part)) found.insert(name.get<std::string>());
  }
  std::vector<std::string> names;
  for (const auto& [name, tensor] : update.optimizer().parameters()) {
    if (found.contains(name)) names.push_back(name);
  }
  return names;
}

std::string first_steps(int64_t steps) {
  return steps == 1 ? "the first step" : fmt::format("the first {} steps", with_thousands(steps));
}

}  // namespace

UpdateWatch::UpdateWatch(const Context& context, int64_t first_step, int64_t num_steps)
    : context_(context),
      first_step_(first_step),
      due_(first_step + std::min(kSteps, num_steps - first_step)) {}

std::vector<std::string> UpdateWatch::after_step(int64_t global_step) {
  if (global_step != due_) return {};
  const std::string steps = first_steps(global_step - first_step_);
  std::vector<std::string> warnings;
  for (const auto& [name, update] : context_.updates) {
    if (update->skipped() > 0) continue;  // a warning was already given, with the reason
    if (update->count() == 0) {
      warnings.push_back(fmt::format(
          "{}: no update in {}: no train op that ran called its step() or apply()", name, steps));
      continue;
    }
    const std::vector<std::string> names = untouched(context_.world, *update);
    if (names.empty()) continue;
    warnings.push_back(fmt::format(
        "{}: {} of {} parameters had no gradient in {}: the loss does not depend on {}. Is that "
        "part of the network used, and not cut off by detach()? requires_grad_(false) says that "
        "it is meant so",
        name, names.size(), update->optimizer().parameters().size(), steps, list_text(names)));
  }
  for (const std::string& unused : {context_.networks.checkpoint_modules().warning(),
                                    context_.networks.float32_modules().warning()}) {
    if (!unused.empty()) warnings.push_back(unused);
  }
  return warnings;
}

}  // namespace stepop
