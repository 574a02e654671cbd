#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/iterator/hook.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// A hook of the config, and its name there.
struct NamedHook {
  std::string name;
  std::string class_name;
  std::string path;  ///< Of its config.
  std::unique_ptr<Hook> hook;
  std::optional<Trigger> when = {};  ///< Nothing: in every step.
};

/// Makes the hooks of `hooks` in the config, in their order. `hooks` is a map of names, `hooks:
/// {stop: {class: StopBelow, value: 0.01}, other: null}`, where null turns a hook off; or a list of
/// components, which are named by their classes. A hook's tracked state is below `hooks/<name>/` in
/// a checkpoint. Throws UsageError for anything else.
std::vector<NamedHook> make_hooks(const Config& config, const Context& context);

/// Reads `hooks/<name>/when`.
void read_times(std::vector<NamedHook>& hooks, const Config& config, int64_t steps_per_epoch);

/// Makes the keys of `hooks` known where nothing is trained.
void declare_hooks(const Config& config);

}  // namespace stepop
