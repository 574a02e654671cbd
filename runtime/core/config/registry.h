#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// One parameter of a component, as `stepop list` shows it.
struct Parameter {
  std::string name;
  std::string default_value;  ///< As it is written in a config; empty when it must be given.
  std::string about;
  bool is_path = false;  ///< The name of a file or folder, made absolute in the saved config.
};

/// The documentation of a component.
struct About {
  std::string summary;
  std::vector<Parameter> parameters;
};

/// What a registration's trailing arguments say, if there are any.
inline About about(About given = {}) { return given; }

/// One registered name of one kind.
struct Registration {
  std::string name;
  About about;
  std::string file;
  int line = 0;
};

/// The names of one kind of component ("model", "dataset", ...), without their factories.
class Catalogue {
 public:
  explicit Catalogue(std::string kind);
  ~Catalogue();
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  const std::string& kind() const { return kind_; }
  /// Sorted by name.
  const std::vector<Registration>& registrations() const { return registrations_; }

  /// What is registered as `name`, which stands at `path` of `config`; throws UsageError with the
  /// known names, nearest first.
  const Registration& registration(const std::string& name, const Config& config,
                                   std::string_view path) const {
    return registrations_[find(name, config, path)];
  }

  /// Every kind that has a registry, sorted by kind.
  static std::vector<const Catalogue*> all();

  /// Throws Error when a name was registered twice in a kind, with both files. Registration runs
  /// before main() and cannot throw itself.
  static void check();

 protected:
  /// The position of the new entry among the sorted registrations.
  size_t insert(Registration registration);
  /// The position of `name`; throws as `registration` does.
  size_t find(const std::string& name, const Config& config, std::string_view path) const;

 private:
  std::string kind_;
  std::vector<Registration> registrations_;
  std::vector<std::string> duplicates_;
};

/// A component as a config names it: `model: LeNet`, or `model: {class: LeNet, hidden: [120, 84]}`.
struct Component {
  std::string name;
  Config params;  ///< The map's part of the config; `class` is read.
};

/// Reads the component at `path`; throws UsageError when it is neither a name nor a map with one.
Component read_component(const Config& config, std::string_view path);

/// Marks the declared parameters of a component that is not built in this run as known and makes
/// its paths absolute. An unknown class is an error as in a build.
void declare_component(const Catalogue& catalogue, const Config& config, std::string_view path);

/// Makes the paths of all components in a config absolute, built or not, by their declared
/// parameters, those of `init_from` and of callbacks that are scripts: so that a config that is
/// printed or saved loads from anywhere.
void make_paths_absolute(const Config& config);

/// Name -> factory for one kind of component.
template <class Signature>
class Registry : public Catalogue {
 public:
  using Factory = std::function<Signature>;
  using Catalogue::Catalogue;

  bool add(Registration registration, Factory factory) {
    const size_t position = insert(std::move(registration));
    factories_.insert(factories_.begin() + static_cast<std::ptrdiff_t>(position),
                      std::move(factory));
    return true;
  }

  /// The factory of `name`, which stands at `path` of `config`.
  const Factory& factory(const std::string& name, const Config& config,
                         std::string_view path) const {
    return factories_[find(name, config, path)];
  }

  /// Builds the component at `path`: its factory is called with its parameters, then `arguments`.
  template <class... Arguments>
  auto build(const Config& config, std::string_view path, Arguments&&... arguments) const {
    const Component component = read_component(config, path);
    return factory(component.name, config, path)(component.params,
                                                 std::forward<Arguments>(arguments)...);
  }

 private:
  std::vector<Factory> factories_;
};

}  // namespace stepop

#define STEPOP_CONCAT_(a, b) a##b
#define STEPOP_CONCAT(a, b) STEPOP_CONCAT_(a, b)

/// Adds `factory` to `registry` before main(). The trailing arguments make an `About`.
#define STEPOP_REGISTER(registry, name, factory, ...)                                 \
  [[maybe_unused]] static const bool STEPOP_CONCAT(stepop_registered_, __COUNTER__) = \
      (registry).add({name, ::stepop::about(__VA_ARGS__), __FILE__, __LINE__}, factory)
