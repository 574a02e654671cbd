#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/train/iterator/hook.h"

namespace stepop {

/// A hook of the config, and its name there.
struct NamedHook {
  std::string name;
  std::string class_name;
  std::unique_ptr<Hook> hook;
};

/// Makes the hooks of `hooks` in the config, in their order. `hooks` is a map of names, `hooks:
/// {stop: {class: StopBelow, value: 0.01}, other: null}`, where null turns a hook off; or a list of
/// components, which are named by their classes. A hook's tracked state is below `hooks/<name>/` in
/// a checkpoint. Throws UsageError for anything else.
std::vector<NamedHook> make_hooks(const Config& config, const Context& context);

/// Makes the keys of `hooks` known where nothing is trained.
void declare_hooks(const Config& config);

}  // namespace stepop
