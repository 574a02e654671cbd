// The checks of Runner before the first batch of a kind.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "iterators/extensible/flow.h"
#include "iterators/extensible/runner.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"

namespace stepop::extensible {

/// The keys of batches, and the keys that any part makes.
std::vector<std::string> Runner::known_with(const std::vector<std::string>& given) const {
  std::vector<std::string> known = given;
  for (const auto& [split, checked] : checked_) {
    for (const auto& earlier : checked) known.insert(known.end(), earlier.begin(), earlier.end());
  }
  const auto add = [&](const Part& part) {
    for (const auto& use : part.writes) known.push_back(keys_.name(use.slot));
  };
  for (const auto& step : steps_) {
    for (const auto& part : step.injectors) add(part);
    for (const auto& part : step.losses) add(part);
  }
  return known;
}

/// A step whose required keys are missing is skipped; but a required key that no batch has and no
/// part makes is a mistake.
void Runner::check_required(const std::vector<std::string>& known) const {
  for (const auto& step : steps_) {
    for (const Slot slot : step.requires_) {
      const std::string& name = keys_.name(slot);
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw UsageError(fmt::format("{}/requires: nothing makes \"{}\"; there are: {}", step.place,
                                   name, list_text(known)));
    }
  }
}

/// The same for pictures, which are left out while the part that makes them is off.
void Runner::check_visuals(const std::vector<std::string>& known) const {
  constexpr const char* kVisuals = "logger/visuals";
  const Config& config = context_.config;
  if (context_.position.split != "train" || !config.has(kVisuals)) return;
  const auto names = config.peek(kVisuals)->is_text()
                         ? std::vector<std::string>{config.get<std::string>(kVisuals)}
                         : config.get<std::vector<std::string>>(kVisuals);
  for (const auto& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto near = nearest_names(name, known, 1);
    throw config.error(kVisuals,
                       fmt::format("nothing makes \"{}\"; there are: {}{}", name, list_text(known),
                                   near.empty() ? "" : "; did you mean " + near[0] + "?"));
  }
}

void Runner::check(const Batch& batch) {
  const std::string& split = context_.position.split;
  const bool is_training = split == "train";
  auto& checked = checked_[split];
  const auto has_these_names = [&](const std::vector<std::string>& names) {
    return std::ranges::equal(
        names, batch.tensors(), {}, {},
        [](const auto& entry) -> const auto& { return entry.first; });
  };
  if (std::ranges::any_of(checked, has_these_names)) return;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : batch.tensors()) names.push_back(name);
  Keys keys = keys_;  // with the keys that nothing reads, for messages
  std::vector<Slot> given;
  for (const auto& name : names) given.push_back(keys.slot(name));
  const std::vector<std::string> known = known_with(names);
  check_required(known);
  check_visuals(known);
  std::vector<const Part*> behind;
  if (!is_training) {
    for (const auto& part : evaluators_) {
      if (part.measures(split)) behind.push_back(&part);
    }
  }
  const bool has_parts = parts_ > 1 || context_.config.has("train/mod_batch_factor");
  check_flow(steps_, behind, keys, given, is_training, has_parts, first_iteration(context_.config));
  checked.push_back(names);
}

}  // namespace stepop::extensible
