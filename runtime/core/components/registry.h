#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/components/parameters.h"
#include "runtime/core/config/config.h"

namespace stepop {

/// The documentation of a component.
struct About {
  std::string summary;
  std::vector<Parameter> parameters = {};
  /// A name that is read, but not listed: of another library, of an earlier version, or listed
  /// elsewhere. It gives way to another registration of its name.
  bool is_alias = false;
};

/// Turns a registration's optional trailing arguments into an About.
inline About about(About given = {}) { return given; }

/// The same for a class; one with `Params` has its parameters declared there.
template <class T>
About about_class(About given = {}) {
  if constexpr (HasParams<T>) given.parameters = parameters_of<typename T::Params>();
  return given;
}

template <class T>
struct ParamsOf {};
template <HasParams T>
struct ParamsOf<T> {
  using type = typename T::Params;
};

/// A class with a constructor from its `Params` and `Arguments`. One that inherits `Params` may
/// have other constructors.
template <class T, class... Arguments>
concept TakesParams =
    HasParams<T> && std::is_constructible_v<T, typename ParamsOf<T>::type, Arguments...>;

/// A component by its constructor: from its `Params` and, if it wants it, its part of the config
/// behind them; from that part alone without `Params`. `arguments` follow.
template <class T, class... Arguments>
std::unique_ptr<T> make_component(const Config& config, Arguments&&... arguments) {
  if constexpr (TakesParams<T, const Config&, Arguments...>) {
    return std::make_unique<T>(read_parameters<typename T::Params>(config), config,
                               std::forward<Arguments>(arguments)...);
  } else if constexpr (TakesParams<T, Arguments...>) {
    return std::make_unique<T>(read_parameters<typename T::Params>(config),
                               std::forward<Arguments>(arguments)...);
  } else {
    return std::make_unique<T>(config, std::forward<Arguments>(arguments)...);
  }
}

/// One registered name of one kind.
struct Registration {
  std::string name;
  About about;
  std::string file;
  int line = 0;
};

/// The names of one kind of component ("model", "dataset", ...), without their factories. A kind
/// may have several roles: a "record filter" and a "preprocessor" are functions. What one is built
/// from, and where a config names it, belongs to its role.
class Catalogue {
 public:
  explicit Catalogue(std::string role, std::string kind = {});
  ~Catalogue();
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  /// What the kind is called where it has no other roles.
  const std::string& role() const { return role_; }
  const std::string& kind() const { return kind_; }
  /// Sorted by name.
  const std::vector<Registration>& registrations() const { return registrations_; }

  /// The registration of `name`, which is at `path` of `config`; throws UsageError with the known
  /// names, nearest first.
  const Registration& registration(const std::string& name, const Config& config,
                                   std::string_view path) const {
    return registrations_[find(name, config, path)];
  }

  /// Every role with a registry, sorted by kind, then by role.
  static std::vector<const Catalogue*> all();

  /// Throws Error when a name was registered twice for a role, with both files. Registration itself
  /// runs before main() and cannot throw.
  static void check();

 protected:
  /// The position of the new entry among the sorted registrations.
  size_t insert(Registration registration);
  /// The position of `name`; throws the same errors as `registration`.
  size_t find(const std::string& name, const Config& config, std::string_view path) const;

 private:
  std::string role_;
  std::string kind_;
  std::vector<Registration> registrations_;
  std::vector<std::string> duplicates_;
};

/// A component in a config: `model: LeNet`, or `model: {class: LeNet, hidden: [120, 84]}`.
struct Component {
  std::string name;
  Config params;  ///< The config's part for the component; `class` is already read.
};

/// Reads the component at `path`; throws UsageError unless it is a name, or a map with a name.
Component read_component(const Config& config, std::string_view path);

/// Marks the declared parameters of a component as known and makes its paths absolute, although
/// this run does not build it. An unknown class is an error, as in a build.
void declare_component(const Catalogue& catalogue, const Config& config, std::string_view path);

/// Makes all paths in a config absolute, so that a printed or saved config loads from any folder:
/// the declared path parameters of all components, whether they are built or not, their objects of
/// Python files (`my_data.py:Train`), the paths of `init_from`, and callbacks that are scripts.
void make_paths_absolute(const Config& config);

/// Name -> factory for one role of components.
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

  /// The factory of `name`, which is at `path` of `config`.
  const Factory& factory(const std::string& name, const Config& config,
                         std::string_view path) const {
    return factories_[find(name, config, path)];
  }

  /// Builds the component at `path`: calls its factory with its parameters, followed by
  /// `arguments`.
  template <class... Arguments>
  auto build(const Config& config, std::string_view path, Arguments&&... arguments) const {
    const Component component = read_component(config, path);
    return factory(component.name, config, path)(component.params,
                                                 std::forward<Arguments>(arguments)...);
  }

 private:
  std::vector<Factory> factories_;
};

/// Whether a macro's word for a component was written without quotes, which would be in the name.
constexpr bool has_no_quotes(std::string_view word) {
  return word.find('"') == std::string_view::npos;
}

}  // namespace stepop

#define STEPOP_CONCAT_(a, b) a##b
#define STEPOP_CONCAT(a, b) STEPOP_CONCAT_(a, b)

#define STEPOP_CHECK_WORD(name)                \
  static_assert(::stepop::has_no_quotes(name), \
                "a component's name stands in its STEPOP_REGISTER_... without quotes")

/// Adds `factory` to `registry` before main(). The trailing arguments form an `About`.
#define STEPOP_REGISTER(registry, name, factory, ...)                                 \
  STEPOP_CHECK_WORD(name);                                                            \
  [[maybe_unused]] static const bool STEPOP_CONCAT(stepop_registered_, __COUNTER__) = \
      (registry).add({name, ::stepop::about(__VA_ARGS__), __FILE__, __LINE__}, factory)
