#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/train/iterator/hook.h"

namespace stepop {

/// A hook of the config and the name that it has there.
struct NamedHook {
  std::string name;
  std::string class_name;
  std::unique_ptr<Hook> hook;
};

/// Makes the hooks of `hooks` in the config, in their order: a map of names,
/// `hooks: {stop: {class: StopBelow, value: 0.01}, other: null}`, of which null is off; or a list
/// of components, whose names are those of their classes. What each tracks stands below
/// `hooks/<name>/` in a checkpoint. Throws UsageError for anything else.
std::vector<NamedHook> make_hooks(const Config& config, const Context& context);

/// Makes the keys of `hooks` known where nothing is trained.
void declare_hooks(const Config& config);

}  // namespace stepop
