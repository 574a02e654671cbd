#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/formats/state.h"

namespace torch::nn {
class Module;
}

namespace stepop {

/// The advice for a checkpoint that does not fit what a run tracks, for messages.
inline constexpr const char* kHowToFit =
    "Give the config that it was trained with; or start a new run with its weights: -r";

/// The prefix of what hooks track. Hooks may change while a run lasts: a checkpoint may lack the
/// state of a hook, and may hold the state of a hook that no longer exists.
inline constexpr std::string_view kHooksPrefix = "hooks/";

/// The state that must survive a restart, by name. The runtime saves and restores it.
class Tracker {
 public:
  using Save = std::function<State()>;
  using Load = std::function<void(const State&)>;

  /// During its lifetime, names that are added begin with `prefix`.
  class Prefix {
   public:
    Prefix(Tracker& tracker, std::string prefix);
    ~Prefix() { tracker_.prefix_ = before_; }
    Prefix(const Prefix&) = delete;
    Prefix& operator=(const Prefix&) = delete;

   private:
    Tracker& tracker_;
    std::string before_;
  };

  /// Tracks an object whose tensors become `<name>.<tensor>` in a checkpoint. Throws Error when the
  /// name is taken, empty, or contains a dot.
  void add(const std::string& name, Save save, Load load);
  /// The same for the tensors of a network, or of its averages.
  void add_network(const std::string& name, Save save, Load load);

  /// Says that a thing that is tracked is this module, which must live as long.
  void add_module(torch::nn::Module& module) { modules_.push_back(&module); }
  const std::vector<torch::nn::Module*>& modules() const { return modules_; }

  /// Everything tracked, or the one thing `name`.
  State save() const;
  State save(const std::string& name) const;

  /// Restores everything tracked. Throws Error for a name that `state` lacks, and for a name in
  /// `state` that is not tracked, unless the name belongs to a hook; returns the hooks' names.
  std::vector<std::string> load(const State& state) const;
  /// Restores only `name`, from a state that may hold more.
  void load(const std::string& name, const State& state) const;

  std::vector<std::string> names() const;
  /// The names of networks and of their averages alone.
  std::vector<std::string> networks() const;
  /// Whether names are added with a prefix, so that none of them is the runtime's own.
  bool has_prefix() const { return !prefix_.empty(); }

 private:
  struct Entry {
    std::string name;
    Save save;
    Load load;
    bool is_network = false;
  };

  const Entry& entry(const std::string& name) const;
  bool is_tracked(std::string_view name) const;

  std::vector<Entry> entries_;
  std::vector<torch::nn::Module*> modules_;
  std::string prefix_;
};

}  // namespace stepop
