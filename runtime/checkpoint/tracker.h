#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/formats/state.h"

namespace stepop {

/// The remedy when a checkpoint does not fit what a run tracks, for messages.
inline constexpr const char* kHowToFit =
    "Give the config that it was trained with; or start a new run with its weights: -r";

/// What must survive a restart, by name. The runtime saves and restores it.
class Tracker {
 public:
  using Save = std::function<State()>;
  using Load = std::function<void(const State&)>;

  /// Tracks a thing whose tensors become `<name>.<tensor>` in a checkpoint. Throws Error when the
  /// name is taken, empty, or has a dot.
  void add(const std::string& name, Save save, Load load);

  /// Everything tracked, or the one thing `name`.
  State save() const;
  State save(const std::string& name) const;

  /// Restores everything tracked. Throws Error for a name that `state` lacks and for a name in it
  /// that is not tracked.
  void load(const State& state) const;
  /// Restores `name` alone from a state that may hold more.
  void load(const std::string& name, const State& state) const;

  std::vector<std::string> names() const;

 private:
  struct Entry {
    std::string name;
    Save save;
    Load load;
  };

  const Entry& entry(const std::string& name) const;

  std::vector<Entry> entries_;
};

}  // namespace stepop
