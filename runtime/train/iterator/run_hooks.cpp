#include "runtime/train/iterator/run_hooks.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr const char* kWhen = "/when";

struct Place {
  std::string name;
  std::string path;  ///< In the config.
};

/// The places of the config's hooks that are on.
std::vector<Place> places_of(const Config& config) {
  std::vector<Place> places;
  const Value* value = config.peek("hooks");
  if (!config.has("hooks")) return places;
  if (value->is_map()) {
    for (const auto& [name, component] : value->as_map()) {
      const std::string path = "hooks/" + name;
      if (config.has(path)) places.push_back({name, path});
    }
    return places;
  }
  if (!value->is_list()) {
    throw config.error("hooks",
                       fmt::format("expected a map of names, {{name: {{class: ...}}}}, or a list "
                                   "of classes, found {}",
                                   value->describe()));
  }
  std::map<std::string, int> counts;
  for (size_t i = 0; i < value->as_list().size(); ++i) {
    const std::string path = fmt::format("hooks/{}", i);
    if (!config.has(path)) continue;
    const std::string name = read_component(config, path).name;
    const int count = ++counts[name];
    places.push_back({count == 1 ? name : fmt::format("{}_{}", name, count), path});
  }
  return places;
}

}  // namespace

HookRegistry& hooks() {
  static HookRegistry registry("hook");
  return registry;
}

void declare_hooks(const Config& config) {
  for (const auto& [name, path] : places_of(config)) {
    declare_component(hooks(), config, path);
    config.claim(path + kWhen);
  }
}

std::vector<NamedHook> make_hooks(const Config& config, const Context& context) {
  std::vector<NamedHook> made;
  for (const auto& [name, path] : places_of(config)) {
    const Tracker::Prefix prefix(context.tracker, fmt::format("{}{}/", kHooksPrefix, name));
    made.push_back({name, read_component(config, path).name, path, with_std_exceptions(path, [&] {
                      return hooks().build(config, path, context);
                    })});
  }
  return made;
}

void read_times(std::vector<NamedHook>& hooks, const Config& config, int64_t steps_per_epoch) {
  for (NamedHook& hook : hooks) {
    const std::string path = hook.path + kWhen;
    if (config.has(path)) hook.when = Trigger(config, path, steps_per_epoch);
  }
}

}  // namespace stepop
